#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/matvec.h"

namespace attndiff::kernels::mutants {

/// `launch_matvec` with its sum cut into `splits` ranges of the depth, whose partial sums are combined at the end.
struct MatvecVariant {
  int splits = 4;              ///< 1 to 32
  bool bf16_partials = false;  ///< each partial sum is rounded to bf16 on the way: a fault
};

void launch_matvec_variant(const MatvecArgs& args, const MatvecVariant& variant, cudaStream_t stream);

/// y[t][o] = bf16((sum_k x[t][k] * w[o][k]) * scale): the scale is applied before the only rounding.
struct ScaledProductArgs {
  const Bf16* x = nullptr;  ///< [tokens, depth]
  const Bf16* w = nullptr;  ///< [outputs, depth]
  Bf16* y = nullptr;        ///< [tokens, outputs]
  std::int64_t tokens = 0;
  std::int64_t outputs = 0;
  std::int64_t depth = 0;
  float scale = 0;
};

void launch_scaled_product(const ScaledProductArgs& args, cudaStream_t stream);

}  // namespace attndiff::kernels::mutants
