#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

/// scores[t][p] = bf16(sum_h bf16(max(bf16(q[t][h] . keys[p]), 0) * w[t][h])), before any mask. Dots run on the tensor
/// cores with float32 accumulation: operands on the fp4 grid make them exact (docs/numerics.md).
struct IndexScoreArgs {
  const Bf16* q = nullptr;     ///< [tokens, heads, head_dim], head_dim % 16 == 0
  const Bf16* keys = nullptr;  ///< [length, head_dim]
  const Bf16* w = nullptr;     ///< [tokens, heads]
  Bf16* scores = nullptr;      ///< [tokens, length]
  std::int64_t tokens = 0;
  std::int64_t length = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
};

/// Shared memory a block needs, in bytes.
[[nodiscard]] std::size_t index_score_shared_bytes(std::int64_t heads, std::int64_t head_dim) noexcept;

/// Once per process and device, before the first launch with more than 48 KiB.
void prepare_index_scores(std::int64_t heads, std::int64_t head_dim);
void launch_index_scores(const IndexScoreArgs& args, cudaStream_t stream);

}  // namespace attndiff::kernels
