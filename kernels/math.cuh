#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullMask = 0xffffffffU;

/// float32 value of bfloat16 bits, exact.
__device__ __forceinline__ float widen(std::uint16_t bits) {
  return __uint_as_float(static_cast<unsigned>(bits) << 16U);
}
__device__ __forceinline__ float widen(Bf16 v) { return widen(v.bits); }

/// Nearest bfloat16, ties to even; any NaN becomes 0x7fc0 with its sign, as in reference/contract/bfloat16.h.
__device__ __forceinline__ std::uint16_t narrow_bits(float v) {
  const unsigned u = __float_as_uint(v);
  const bool nan = (u & 0x7fffffffU) > 0x7f800000U;
  const unsigned rounded = (u + 0x7fffU + ((u >> 16U) & 1U)) >> 16U;
  return static_cast<std::uint16_t>(nan ? (((u >> 16U) & 0x8000U) | 0x7fc0U) : rounded);
}
__device__ __forceinline__ Bf16 narrow(float v) { return Bf16{narrow_bits(v)}; }

/// `bf16(v)` of the specification, kept in float32.
__device__ __forceinline__ float round_to_bf16(float v) { return widen(narrow_bits(v)); }

/// Sum over a warp by a butterfly: the same bits in every lane and in every run.
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    v += __shfl_xor_sync(kFullMask, v, step);
  }
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    v = fmaxf(v, __shfl_xor_sync(kFullMask, v, step));
  }
  return v;
}

/// Sum over a block of at most 1024 threads, in every thread; `scratch` holds one float a warp.
__device__ __forceinline__ float block_sum(float v, float* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  v = warp_sum(v);
  __syncthreads();
  if (lane == 0) {
    scratch[warp] = v;
  }
  __syncthreads();
  return warp_sum(lane < warps ? scratch[lane] : 0.0F);
}

__device__ __forceinline__ float block_max(float v, float* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  v = warp_max(v);
  __syncthreads();
  if (lane == 0) {
    scratch[warp] = v;
  }
  __syncthreads();
  return warp_max(lane < warps ? scratch[lane] : -INFINITY);
}

}  // namespace attndiff::kernels
