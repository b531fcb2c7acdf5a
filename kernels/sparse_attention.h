#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

/// Sparse attention of every query over the rows its indices name, drawn from two sources: entry e < window_count is
/// window row e, else compressed row e - window_count; -1 is absent and never read. Every row is both key and value.
///   s_j = (q . row_j) * scale, m = max(sink, all s), den = exp(sink - m) + sum exp(s_j - m),
///   lse = m + ln(den), o = bf16(sum_j exp(s_j - m) * row_j / den), in float32.
struct SparseAttentionArgs {
  const Bf16* q = nullptr;                ///< [tokens, heads, head_dim]
  const Bf16* window_rows = nullptr;      ///< [window_count, head_dim]
  const Bf16* compressed_rows = nullptr;  ///< [.., head_dim]; may be null where no entry needs it
  const std::int32_t* idx = nullptr;      ///< [tokens, columns]
  const float* sink = nullptr;            ///< [heads]
  Bf16* o = nullptr;                      ///< [tokens, heads, head_dim]
  float* lse = nullptr;                   ///< [tokens, heads]
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t columns = 0;
  std::int64_t window_count = 0;
  float scale = 0;
};

/// The ways to compute it. `wide` and `narrow` cut the same sums differently over blocks: their bytes are equal.
enum class AttentionForm : std::uint8_t {
  plain,   ///< float32 arithmetic, any head_dim
  wide,    ///< tensor cores, 64 heads a block: many queries
  narrow,  ///< tensor cores, 16 heads and a slice of the output columns a block: few queries
};

/// Whether a form can compute these dimensions: `wide` has head_dim 512, `narrow` 64 and 512.
[[nodiscard]] bool attention_supports(AttentionForm form, std::int64_t head_dim) noexcept;

/// The form for a call of `tokens` queries.
[[nodiscard]] AttentionForm attention_form(std::int64_t tokens, std::int64_t heads, std::int64_t head_dim) noexcept;

/// Shared memory one block of a form needs for `columns` index columns, in bytes.
[[nodiscard]] std::size_t attention_shared_bytes(AttentionForm form, std::int64_t head_dim,
                                                 std::int64_t columns) noexcept;

/// Raises the kernels' shared-memory limits; once per device, before the first launch. `columns` is the most.
void prepare_sparse_attention(std::int64_t head_dim, std::int64_t columns);

/// Throws Error(internal) when the form does not support the dimensions.
void launch_sparse_attention(const SparseAttentionArgs& args, AttentionForm form, cudaStream_t stream);

}  // namespace attndiff::kernels
