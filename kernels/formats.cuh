#pragma once

#include <cuda_runtime.h>

namespace attndiff::kernels {

/// Device twins of reference/formats.h, held equal by quantize_test.cpp.

inline constexpr float kE4m3Largest = 448.0F;
inline constexpr float kE2m1Largest = 6.0F;

/// The value of the nearest e4m3 code: ties to even, saturating at 448; NaN stays NaN.
__device__ __forceinline__ float e4m3_value(float v) {
  constexpr float kSmallestNormal = 0x1p-6F;
  constexpr float kSubnormalStep = 0x1p-9F;
  constexpr unsigned kDropped = 20;  // mantissa bits of float32 that e4m3 lacks
  const float magnitude = fabsf(v);
  float rounded = 0;
  if (isnan(v)) {
    return v;
  }
  if (magnitude >= kE4m3Largest) {
    rounded = kE4m3Largest;
  } else if (magnitude < kSmallestNormal) {
    rounded = rintf(magnitude / kSubnormalStep) * kSubnormalStep;
  } else {
    const unsigned u = __float_as_uint(magnitude);
    const unsigned carried = u + ((1U << (kDropped - 1)) - 1) + ((u >> kDropped) & 1U);
    rounded = __uint_as_float(carried & ~((1U << kDropped) - 1));
  }
  return copysignf(rounded, v);
}

/// The nearest e2m1 value: a tie goes to the even code, saturating at 6; NaN stays NaN, zero keeps its sign.
__device__ __forceinline__ float e2m1_value(float v) {
  if (isnan(v)) {
    return v;
  }
  const float a = fabsf(v);
  float r = kE2m1Largest;
  r = a <= 5.0F ? 4.0F : r;
  r = a < 3.5F ? 3.0F : r;
  r = a <= 2.5F ? 2.0F : r;
  r = a < 1.75F ? 1.5F : r;
  r = a <= 1.25F ? 1.0F : r;
  r = a < 0.75F ? 0.5F : r;
  r = a <= 0.25F ? 0.0F : r;
  return copysignf(r, v);
}

/// The smallest power of two >= v for positive finite v, from the IEEE fields; NaN and infinity stay.
__device__ __forceinline__ float power_of_two_ceiling(float v) {
  const unsigned u = __float_as_uint(v);
  if ((u & 0x7f800000U) == 0x7f800000U) {
    return v;
  }
  const unsigned exponent = ((u & 0x7f800000U) >> 23U) + ((u & 0x007fffffU) != 0 ? 1U : 0U);
  return __uint_as_float(exponent << 23U);
}

}  // namespace attndiff::kernels
