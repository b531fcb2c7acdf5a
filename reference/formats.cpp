#include "reference/formats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace attndiff::reference {
namespace {

constexpr std::uint32_t kSignBit = 0x80000000U;
constexpr std::uint32_t kExponentMask = 0x7f800000U;
constexpr std::uint32_t kMantissaMask = 0x007fffffU;
constexpr int kF32MantissaBits = 23;

constexpr std::uint8_t kE4m3Nan = 0x7f;
constexpr std::uint8_t kE4m3Largest = 0x7e;
constexpr int kE4m3Bias = 7;
constexpr int kE4m3MantissaBits = 3;
constexpr float kE4m3SmallestNormal = 0.015625F;    // 2^-6
constexpr float kE4m3SubnormalStep = 0.001953125F;  // 2^-9

constexpr int kE8m0Bias = 127;
constexpr std::uint8_t kE8m0Nan = 255;

}  // namespace

std::uint8_t e4m3_encode(float v) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const auto sign = static_cast<std::uint8_t>((bits & kSignBit) >> 24U);
  if (std::isnan(v)) {
    return sign | kE4m3Nan;
  }
  const float magnitude = std::fabs(v);
  if (magnitude >= kE4m3Max) {
    return sign | kE4m3Largest;
  }
  if (magnitude < kE4m3SmallestNormal) {
    // nearbyint rounds ties to even in the default mode; 8 steps reach the smallest normal, whose code is 8 as well
    return sign | static_cast<std::uint8_t>(std::nearbyint(magnitude / kE4m3SubnormalStep));
  }
  // Rounds the float32 mantissa to 3 bits; a carry runs into the exponent as it should.
  constexpr unsigned kDrop = kF32MantissaBits - kE4m3MantissaBits;
  const std::uint32_t m = bits & ~kSignBit;
  const std::uint32_t rounded = m + ((1U << (kDrop - 1)) - 1) + ((m >> kDrop) & 1U);
  const std::uint32_t code = (rounded >> kDrop) - (static_cast<std::uint32_t>(127 - kE4m3Bias) << kE4m3MantissaBits);
  return sign | (code > kE4m3Largest ? kE4m3Largest : static_cast<std::uint8_t>(code));
}

float e4m3_decode(std::uint8_t code) noexcept {
  const float sign = (code & 0x80U) != 0 ? -1.0F : 1.0F;
  const int exponent = (code >> kE4m3MantissaBits) & 0xf;
  const int mantissa = code & 0x7;
  if ((code & 0x7fU) == kE4m3Nan) {
    return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  }
  if (exponent == 0) {
    return sign * static_cast<float>(mantissa) * kE4m3SubnormalStep;
  }
  return sign * std::ldexp(1.0F + static_cast<float>(mantissa) / 8.0F, exponent - kE4m3Bias);
}

float e2m1_round(float v) noexcept {
  if (std::isnan(v)) {
    return v;
  }
  const float a = std::fabs(v);
  float r = 0;
  // Midpoints between neighbours; a tie goes to the value whose code is even: 0, 1, 2, 4.
  if (a <= 0.25F) {
    r = 0.0F;
  } else if (a < 0.75F) {
    r = 0.5F;
  } else if (a <= 1.25F) {
    r = 1.0F;
  } else if (a < 1.75F) {
    r = 1.5F;
  } else if (a <= 2.5F) {
    r = 2.0F;
  } else if (a < 3.5F) {
    r = 3.0F;
  } else if (a <= 5.0F) {
    r = 4.0F;
  } else {
    r = kE2m1Max;
  }
  return std::copysign(r, v);
}

float e8m0_decode(std::uint8_t code) noexcept {
  return code == kE8m0Nan ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, code - kE8m0Bias);
}

float pow2ceil(float v) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  if ((bits & kExponentMask) == kExponentMask) {
    return v;
  }
  std::uint32_t exponent = (bits & kExponentMask) >> kF32MantissaBits;
  exponent += (bits & kMantissaMask) != 0 ? 1 : 0;
  return std::bit_cast<float>(exponent << kF32MantissaBits);
}

}  // namespace attndiff::reference
