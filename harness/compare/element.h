#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "reference/contract/bfloat16.h"

namespace attndiff {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An element of a compared tensor as a double, which holds each of them exactly.
[[nodiscard]] inline double value_of(Bf16 v) noexcept { return to_float(v); }
[[nodiscard]] inline double value_of(float v) noexcept { return v; }
[[nodiscard]] inline double value_of(std::int32_t v) noexcept { return v; }
[[nodiscard]] inline double value_of(std::uint8_t v) noexcept { return v; }

/// One unit in the last place of an element type at the magnitude of `v`; integers are 1 apart.
template <typename T>
[[nodiscard]] double unit_at(double v) noexcept {
  if constexpr (std::is_same_v<T, Bf16>) {
    return bf16_unit(v);
  } else if constexpr (std::is_same_v<T, float>) {
    return f32_unit(v);
  } else {
    return 1;
  }
}

}  // namespace attndiff
