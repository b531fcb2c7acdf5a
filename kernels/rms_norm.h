#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

/// y[r][d] = bf16(w[d] * (x[r][d] * rsqrt(mean(x[r]^2) + eps))), in float32. x: [rows, width]; y may be x.
struct RmsNormArgs {
  const Bf16* x = nullptr;
  const float* w = nullptr;  ///< [width]
  Bf16* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float eps = 0;
};

/// The same of a float32 input.
struct RmsNormF32Args {
  const float* x = nullptr;
  const float* w = nullptr;
  Bf16* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float eps = 0;
};

void launch_rms_norm(const RmsNormArgs& args, cudaStream_t stream);
void launch_rms_norm(const RmsNormF32Args& args, cudaStream_t stream);

}  // namespace attndiff::kernels
