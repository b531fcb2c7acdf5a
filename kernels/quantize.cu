#include "kernels/formats.cuh"
#include "kernels/launch.cuh"
#include "kernels/math.cuh"
#include "kernels/quantize.h"

namespace attndiff::kernels {
namespace {

constexpr int kThreads = 256;

struct Fp8 {
  static constexpr int kBlock = 32;
  static constexpr float kFloor = 1e-4F;
  static constexpr float kLimit = kE4m3Largest;
  static __device__ float scale(float amax) { return power_of_two_ceiling(amax / kE4m3Largest); }
  static __device__ float code(float v) { return e4m3_value(v); }
};

struct Fp4E8m0 {
  static constexpr int kBlock = 32;
  static constexpr float kFloor = 6.0F * 0x1p-126F;
  static constexpr float kLimit = kE2m1Largest;
  static __device__ float scale(float amax) { return power_of_two_ceiling(amax / kE2m1Largest); }
  static __device__ float code(float v) { return e2m1_value(v); }
};

struct Fp4E4m3 {
  static constexpr int kBlock = 16;
  static constexpr float kFloor = 6.0F * 0x1p-9F;
  static constexpr float kLimit = kE2m1Largest;
  static __device__ float scale(float amax) { return e4m3_value(amax / kE2m1Largest); }
  static __device__ float code(float v) { return e2m1_value(v); }
};

/// The larger of two magnitudes; a NaN wins, as in torch.amax.
__device__ __forceinline__ float larger_or_nan(float a, float b) { return (isnan(b) || b > a) && !isnan(a) ? b : a; }

/// One thread a value; a quantiser's block is a run of lanes.
template <typename Format>
__global__ void __launch_bounds__(kThreads) quantize(const Bf16* from, Bf16* to, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const float v = i < count ? widen(from[i]) : 0.0F;
  float amax = larger_or_nan(Format::kFloor, fabsf(v));
#pragma unroll
  for (int step = Format::kBlock / 2; step > 0; step /= 2) {
    amax = larger_or_nan(amax, __shfl_xor_sync(kFullMask, amax, step));
  }
  const float s = Format::scale(amax);
  const float scaled = v / s;
  const float clamped = isnan(scaled) ? scaled : fminf(fmaxf(scaled, -Format::kLimit), Format::kLimit);
  if (i < count) {
    to[i] = narrow(Format::code(clamped) * s);
  }
}

template <typename Format>
void run(const QuantizeArgs& a, cudaStream_t stream) {
  launch("quantize", quantize<Format>, blocks_for(a.count, kThreads), kThreads, 0, stream, a.from, a.to, a.count);
}

}  // namespace

void launch_quantize(const QuantizeArgs& args, cudaStream_t stream) {
  if (args.count == 0) {
    return;
  }
  switch (args.kind) {
    case RoundTrip::fp8:
      return run<Fp8>(args, stream);
    case RoundTrip::fp4_e8m0:
      return run<Fp4E8m0>(args, stream);
    case RoundTrip::fp4_e4m3:
      return run<Fp4E4m3>(args, stream);
  }
}

}  // namespace attndiff::kernels
