#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

/// `linear` for one token: y[b][o] = bf16(sum_k x[b][k] * w[b][o][k]) for `batch` independent blocks of the weight,
/// sums in float32. Needs depth % 8 == 0 and x and w 16-byte aligned. With y_f32 the value before the rounding goes
/// there.
struct MatvecArgs {
  const Bf16* x = nullptr;  ///< [batch, depth]
  const Bf16* w = nullptr;  ///< [batch, outputs, depth]
  Bf16* y = nullptr;        ///< [batch, outputs]
  float* y_f32 = nullptr;   ///< [batch, outputs], or null; then y is not written
  std::int64_t outputs = 0;
  std::int64_t depth = 0;
  std::int64_t batch = 1;
};

[[nodiscard]] bool matvec_supports(std::int64_t depth) noexcept;
void launch_matvec(const MatvecArgs& args, cudaStream_t stream);

}  // namespace attndiff::kernels
