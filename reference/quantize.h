#pragma once

#include <cstdint>
#include <span>

namespace attndiff::reference {

/// Round trips of the specification's quantisers: quantise, dequantise, round to bf16. In and out are float32 values
/// that are exact in bf16; a last block may be short. A NaN anywhere in a block makes the whole block NaN (its maximum
/// is NaN). An infinity makes a power-of-two scale infinite, and with it the block NaN; an e4m3 scale saturates at 448,
/// so that the infinity becomes 2688 and finite members survive.

inline constexpr std::int64_t kFp8Block = 32;
inline constexpr std::int64_t kFp4E8m0Block = 32;
inline constexpr std::int64_t kFp4E4m3Block = 16;

/// e4m3 values, one power-of-two scale per 32: s = pow2ceil(max(|x|, 1e-4) / 448).
void fp8_round_trip(std::span<float> row) noexcept;

/// e2m1 values, one power-of-two scale per 32: s = pow2ceil(max(|x|, 6 * 2^-126) / 6).
void fp4_e8m0_round_trip(std::span<float> row) noexcept;

/// e2m1 values, one e4m3 scale per 16: s = e4m3(max(|x|, 6 * 2^-9) / 6), saturating at 448.
void fp4_e4m3_round_trip(std::span<float> row) noexcept;

/// The scale each round trip gives a block.
[[nodiscard]] float fp8_scale(std::span<const float> block) noexcept;
[[nodiscard]] float fp4_e8m0_scale(std::span<const float> block) noexcept;
[[nodiscard]] float fp4_e4m3_scale(std::span<const float> block) noexcept;

}  // namespace attndiff::reference
