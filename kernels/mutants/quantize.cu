#include "kernels/formats.cuh"
#include "kernels/launch.cuh"
#include "kernels/math.cuh"
#include "kernels/mutants/quantize.h"

namespace attndiff::kernels::mutants {
namespace {

constexpr int kThreads = 128;

__device__ float power_of_two_floor(float v) { return __uint_as_float(__float_as_uint(v) & 0x7f800000U); }

__device__ float e2m1_ties_away(float v) {
  constexpr float kMagnitudes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  const float a = fabsf(v);
  float r = 0;
  for (int code = 1; code < 8; ++code) {
    r = a >= (kMagnitudes[code - 1] + kMagnitudes[code]) / 2 ? kMagnitudes[code] : r;
  }
  return copysignf(r, v);
}

__device__ float scale_of(float amax, RoundTrip kind, const QuantizeVariant& v) {
  const float largest = kind == RoundTrip::fp8 ? kE4m3Largest : kE2m1Largest;
  if (kind == RoundTrip::fp4_e4m3) {
    return e4m3_value(amax / largest);
  }
  return v.scale_by_floor ? power_of_two_floor(amax / largest) : power_of_two_ceiling(amax / largest);
}

__device__ float code_of(float scaled, RoundTrip kind, const QuantizeVariant& v) {
  if (kind == RoundTrip::fp8) {
    return e4m3_value(fminf(fmaxf(scaled, -v.e4m3_limit), v.e4m3_limit));
  }
  const float clamped = fminf(fmaxf(scaled, -kE2m1Largest), kE2m1Largest);
  return v.ties_away ? e2m1_ties_away(clamped) : e2m1_value(clamped);
}

/// One thread a block of values, finite ones.
__global__ void __launch_bounds__(kThreads) quantize_variant(QuantizeArgs a, QuantizeVariant v) {
  const std::int64_t width = a.kind == RoundTrip::fp4_e4m3 ? 16 : 32;
  const std::int64_t begin = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * width;
  if (begin >= a.count) {
    return;
  }
  float amax = a.kind == RoundTrip::fp8 ? 1e-4F : kE2m1Largest * (a.kind == RoundTrip::fp4_e4m3 ? 0x1p-9F : 0x1p-126F);
  for (std::int64_t i = begin; i < begin + width; ++i) {
    amax = fmaxf(amax, fabsf(widen(a.from[i])));
  }
  const float s = scale_of(amax, a.kind, v);
  const float inverse = 1.0F / s;
  for (std::int64_t i = begin; i < begin + width; ++i) {
    const float x = widen(a.from[i]);
    a.to[i] = narrow(code_of(v.reciprocal ? x * inverse : x / s, a.kind, v) * s);
  }
}

}  // namespace

void launch_quantize_variant(const QuantizeArgs& args, const QuantizeVariant& variant, cudaStream_t stream) {
  if (args.count > 0) {
    const std::int64_t width = args.kind == RoundTrip::fp4_e4m3 ? 16 : 32;
    launch("quantize_variant", quantize_variant, blocks_for(args.count / width, kThreads), kThreads, 0, stream, args,
           variant);
  }
}

}  // namespace attndiff::kernels::mutants
