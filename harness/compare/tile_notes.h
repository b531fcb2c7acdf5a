#pragma once

#include <cstdint>
#include <string>

#include "reference/contract/landmarks.h"

namespace attndiff {

/// Widths of tiles that indices are held against, widest first.
inline constexpr std::int64_t kTileWidths[] = {128, 64, 32, 16, 8};

/// A run of indices on an axis, [first, end).
struct Run {
  std::int64_t first = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return end - first; }
};

/// "the third quantiser block of 32", "whole quantiser blocks of 32", or nothing.
[[nodiscard]] std::string block_note(const AxisNames& names, std::int64_t extent, Run run);

/// What tiles a run is made of, in the widest that fit and wider than `wider_than`: "the second tile of 64", "the last,
/// partial tile of 64", "whole tiles of 32", or nothing. An end of the axis is no evidence for a tile; two edges inside
/// the axis are, and one is for tiles of 16 and more.
[[nodiscard]] std::string tile_note(std::int64_t extent, Run run, std::int64_t wider_than);

/// "beginning at a multiple of 64", "ending before a multiple of 32", or nothing.
[[nodiscard]] std::string edge_note(std::int64_t extent, Run run);

}  // namespace attndiff
