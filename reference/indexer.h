#pragma once

#include <cstdint>
#include <span>

#include "reference/contract/config.h"

namespace attndiff::reference {

/// One query's index scores against all keys.
struct IndexScoreArgs {
  std::span<const float> q;     ///< [heads, head_dim], exact in bf16
  std::span<const float> keys;  ///< [len, head_dim], exact in bf16
  std::span<const float> w;     ///< [heads], exact in bf16
  std::span<float> out;         ///< [len], before the last rounding to bf16
};

/// out[p] = sum_h bf16(max(bf16(q[h] . key[p]), 0) * w[h]), the sum in float32; the caller rounds it to bf16.
void index_scores(const IndexScoreArgs& args);

/// index_head_dim^-0.5 * index_heads^-0.5 in double, rounded to float32.
[[nodiscard]] float index_weight_scale(const ModelConfig& config) noexcept;

/// The index weight before its last rounding, from the float32 product: bf16(projected) * c.
[[nodiscard]] float scaled_index_weight(float projected, float c) noexcept;

}  // namespace attndiff::reference
