#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/step_scalars.h"
#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

/// k = x . wkv^T and g = x . wgate^T in float32: products and sums by FFMA, never TF32, nothing rounded to bf16.
struct CompressorProductArgs {
  const Bf16* x = nullptr;       ///< [tokens, dim]
  const float* wkv = nullptr;    ///< [width, dim]
  const float* wgate = nullptr;  ///< [width, dim]
  float* k = nullptr;            ///< [tokens, width]
  float* g = nullptr;            ///< [tokens, width]
  std::int64_t tokens = 0;
  std::int64_t dim = 0;
  std::int64_t width = 0;
};

/// Any shape, in tiles.
void launch_compressor_product_tiled(const CompressorProductArgs& args, cudaStream_t stream);

/// One token, one warp an output: tokens == 1 and dim % 8 == 0.
void launch_compressor_product_token(const CompressorProductArgs& args, cudaStream_t stream);

/// The one-token form where it applies, else the tiled one.
void launch_compressor_product(const CompressorProductArgs& args, cudaStream_t stream);

/// Pools groups: per dimension the softmax of g over a group's `ratio` members (maximum subtracted) weighs the sum of
/// k, rounded to bf16.
struct PoolArgs {
  const float* k = nullptr;  ///< [groups, ratio, width]
  const float* g = nullptr;  ///< [groups, ratio, width]
  Bf16* pooled = nullptr;    ///< [groups, width]
  std::int64_t groups = 0;
  std::int64_t ratio = 0;
  std::int64_t width = 0;
};

void launch_pool(const PoolArgs& args, cudaStream_t stream);

/// Writes one token's k and g into the slot `step->partial_slot` of the partial group.
struct PartialWriteArgs {
  const float* k = nullptr;  ///< [width]
  const float* g = nullptr;  ///< [width]
  float* state = nullptr;    ///< [2, ratio, width]: k, then g
  const StepScalars* step = nullptr;
  std::int64_t ratio = 0;
  std::int64_t width = 0;
};

void launch_partial_write(const PartialWriteArgs& args, cudaStream_t stream);

}  // namespace attndiff::kernels
