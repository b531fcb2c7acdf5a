#pragma once

#include <cstdint>
#include <span>

#include "reference/contract/bfloat16.h"

namespace attndiff::reference {

/// Rows in two parts, as a layer holds them: window rows, then compressed rows. Rows past the end of the compressed
/// part were never written and are zero.
struct AttendedRows {
  std::span<const Bf16> window;      ///< [attended window rows, width]
  std::span<const Bf16> compressed;  ///< [written rows, width]

  /// Row `index` as float32; `out` has one row's width.
  void copy_row(std::int64_t index, std::span<float> out) const noexcept;
};

/// One query's attention over the rows its indices name; every row is both key and value.
struct SparseAttentionArgs {
  std::span<const float> q;  ///< [heads, width]
  AttendedRows rows;
  std::span<const std::int32_t> idx;  ///< rows to attend, -1 for an absent entry
  std::span<const float> sink;        ///< [heads]
  float scale = 0;                    ///< head_dim^-0.5, computed in double
  std::span<float> o;                 ///< [heads, width], before its rounding to bf16
  std::span<float> lse;               ///< [heads]
};

/// Softmax attention with a sink logit: m = max(sink, all s), den = exp(sink - m) + sum exp(s_j - m),
/// lse = m + ln(den), o = sum_j (exp(s_j - m) / den) * row_j. The sink has no row. Everything between the inputs and
/// the results is kept in double, so that this side adds next to nothing to a difference: with float32 sums here, 18 of
/// the 832 elements of one recorded `out` differed by a unit; with double none does.
void sparse_attention(const SparseAttentionArgs& args);

}  // namespace attndiff::reference
