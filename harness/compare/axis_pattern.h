#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reference/contract/landmarks.h"

namespace attndiff {

/// The most that could be said about a set of indices on one axis.
enum class AxisReading : std::uint8_t {
  every,    ///< every index of the axis
  single,   ///< one index
  places,   ///< one run of indices or a few: all of them are named
  pattern,  ///< a landmark, a tile or a repetition, too regular for chance
  count,    ///< nothing but how many
};

struct AxisFinding {
  AxisReading reading = AxisReading::count;
  std::string text;  ///< "columns 64-127 (the second tile of 64)"
};

/// Whether the bad elements fill the product of their index sets, or are spread thinly in it.
enum class Spread : std::uint8_t { dense, sparse };

/// Reads a set of indices (ascending, not empty, each below `extent`) on an axis. A dense set is named by what it is
/// exactly. A sparse one is only a sample of what is wrong, so it is named by the smallest tile or landmark around it.
/// What is not named exactly, and what repeats, is named only where as many indices drawn at random would fall into it
/// with a probability below kChance.
[[nodiscard]] AxisFinding read_axis(const AxisNames& names, std::int64_t extent, std::span<const std::int64_t> indices,
                                    Spread spread);

/// Some hundred patterns are tried on an axis, so that one in a hundred random sets would seem to have one.
inline constexpr double kChance = 1e-4;

/// Probability that `drawn` different things out of `total` all lie among a certain `within` of them.
[[nodiscard]] double chance_of(std::int64_t total, std::int64_t within, std::int64_t drawn);

/// "1, 2 and 3".
[[nodiscard]] std::string listed(std::span<const std::string> items);

}  // namespace attndiff
