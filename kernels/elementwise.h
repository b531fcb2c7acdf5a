#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

/// y[i] = bf16(x[i] * scale); y may be x.
struct ScaleArgs {
  const Bf16* x = nullptr;
  Bf16* y = nullptr;
  std::int64_t count = 0;
  float scale = 0;
};

void launch_scale(const ScaleArgs& args, cudaStream_t stream);

/// values[0 .. count) = value.
void launch_fill(float* values, std::int64_t count, float value, cudaStream_t stream);

/// Word of the poison that checks put into buffers before use: a NaN read as float32 or as two bf16 values, and as an
/// index far outside every buffer.
inline constexpr std::uint32_t kPoisonWord = 0x7fffffffU;

/// Overwrites `bytes` bytes with the poison word, the last one cut short where needed. `memory` is 4-byte aligned.
void launch_poison(void* memory, std::size_t bytes, cudaStream_t stream);

}  // namespace attndiff::kernels
