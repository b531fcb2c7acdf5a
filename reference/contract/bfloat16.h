#pragma once

#include <bit>
#include <cstdint>

namespace attndiff {

/// bfloat16 storage: the upper half of an IEEE binary32. Arithmetic is done in float32.
struct Bf16 {
  std::uint16_t bits = 0;

  friend bool operator==(Bf16, Bf16) = default;  // bit equality: NaN payloads and the sign of zero count
};

/// float32 value of a bfloat16, exact.
[[nodiscard]] inline float to_float(Bf16 v) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16U);
}

/// Nearest bfloat16, ties to even; overflow gives an infinity; any NaN becomes the quiet NaN 0x7fc0 with its sign.
[[nodiscard]] inline Bf16 to_bf16(float v) noexcept {
  const auto u = std::bit_cast<std::uint32_t>(v);
  if ((u & 0x7fffffffU) > 0x7f800000U) {
    return Bf16{static_cast<std::uint16_t>(((u >> 16U) & 0x8000U) | 0x7fc0U)};
  }
  return Bf16{static_cast<std::uint16_t>((u + 0x7fffU + ((u >> 16U) & 1U)) >> 16U)};
}

/// `bf16(v)` of the specification: rounded to bfloat16, kept in float32.
[[nodiscard]] inline float round_bf16(float v) noexcept { return to_float(to_bf16(v)); }

/// One unit in the last place of bfloat16 at the magnitude of a finite `v` (8 significant bits; subnormals share
/// 2^-133).
[[nodiscard]] inline double bf16_unit(double v) noexcept {
  constexpr unsigned kDoubleFraction = 52;
  constexpr std::uint64_t kDoubleExponents = 0x7ff;
  constexpr std::uint64_t kMinExponent = 1023 - 126;  // of the smallest normal bfloat16, as a double stores it
  constexpr std::uint64_t kFractionBits = 7;
  const std::uint64_t exponent = (std::bit_cast<std::uint64_t>(v) >> kDoubleFraction) & kDoubleExponents;
  const std::uint64_t normal = exponent < kMinExponent ? kMinExponent : exponent;
  return std::bit_cast<double>((normal - kFractionBits) << kDoubleFraction);
}

/// The same of float32, which is bfloat16 with 16 more bits of fraction.
[[nodiscard]] inline double f32_unit(double v) noexcept { return 0x1p-16 * bf16_unit(v); }

}  // namespace attndiff
