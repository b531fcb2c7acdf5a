#pragma once

#include <cstdint>
#include <span>

#include "reference/contract/config.h"

namespace attndiff::reference {

/// Pools one group: per dimension the softmax of `g` over the group's members (maximum subtracted) weighs the sum of
/// `k`. k, g: f32 [ratio, width]; out: f32 [width], before its rounding to bf16.
void pool_group(std::span<const float> k, std::span<const float> g, std::int64_t ratio, std::span<float> out) noexcept;

/// Position whose rotary angle group `g` of a call gets: its first token's.
[[nodiscard]] std::int64_t group_position(const LayerRole& role, const CallShape& call, std::int64_t g) noexcept;

/// Compressed positions query `t` may see: groups completed at or before its token.
[[nodiscard]] std::int64_t visible_positions(const LayerRole& role, const CallShape& call, std::int64_t t) noexcept;

}  // namespace attndiff::reference
