#pragma once

#include <cstdint>

namespace attndiff::reference {

/// Small floating-point formats of the quantisers. e4m3 is OCP FP8 E4M3 (no infinities, 448 the largest value,
/// S.1111.111 the NaN), e2m1 OCP FP4; source: OCP Microscaling Formats (MX) v1.0, sections 5.3.1, 5.3.3 and 5.4.1.

inline constexpr float kE4m3Max = 448.0F;
inline constexpr float kE2m1Max = 6.0F;

/// Nearest e4m3 code of `v`, ties to even, magnitudes above 448 saturating; NaN gives the NaN code with its sign.
[[nodiscard]] std::uint8_t e4m3_encode(float v) noexcept;
/// Value of an e4m3 code, exact.
[[nodiscard]] float e4m3_decode(std::uint8_t code) noexcept;

/// Nearest e2m1 value of `v` (0, 0.5, 1, 1.5, 2, 3, 4, 6 with the sign of `v`), ties to the even code, saturating
/// at 6. NaN stays NaN.
[[nodiscard]] float e2m1_round(float v) noexcept;

/// Value of an e8m0 code: 2^(code - 127); 255 is NaN.
[[nodiscard]] float e8m0_decode(std::uint8_t code) noexcept;

/// The smallest power of two >= v for positive finite v, read off the IEEE fields: the exponent, plus one where
/// the mantissa is not zero. A subnormal v has exponent field 0 and so gives the smallest normal power, 2^-126,
/// or, with a zero mantissa, 0. NaN and infinity stay what they are.
[[nodiscard]] float pow2ceil(float v) noexcept;

}  // namespace attndiff::reference
