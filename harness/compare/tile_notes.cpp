#include "harness/compare/tile_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

namespace attndiff {
namespace {

/// Smallest tile whose edge, at one end of a run only, says something: one run in sixteen has it by chance.
constexpr std::int64_t kSmallestSingleEdge = 16;

/// "first", "second", ..., "11th".
std::string ordinal(std::int64_t n) {
  static constexpr std::array kWords{"first", "second",  "third",  "fourth", "fifth",
                                     "sixth", "seventh", "eighth", "ninth",  "tenth"};
  if (n <= static_cast<std::int64_t>(kWords.size())) {
    return kWords.at(static_cast<std::size_t>(n - 1));
  }
  const bool teen = n % 100 / 10 == 1;
  const char* ending = teen || n % 10 > 3 || n % 10 == 0 ? "th" : n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : "rd";
  return fmt::format("{}{}", n, ending);
}

bool on_tiles(std::int64_t extent, Run run, std::int64_t width) {
  const bool inner_begin = run.first > 0;
  const bool inner_end = run.end < extent;
  const bool aligned = run.first % width == 0 && (run.end % width == 0 || !inner_end);
  return aligned && (inner_begin || inner_end) && ((inner_begin && inner_end) || width >= kSmallestSingleEdge);
}

/// The widest tile above `wider_than` that a run lies on and that `fits`.
template <typename Fits>
std::optional<std::int64_t> widest(std::int64_t extent, Run run, std::int64_t wider_than, const Fits& fits) {
  for (const std::int64_t width : kTileWidths) {
    if (width > wider_than && on_tiles(extent, run, width) && fits(width)) {
      return width;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string block_note(const AxisNames& names, std::int64_t extent, Run run) {
  const std::int64_t b = names.block;
  if (b < 2 || run.first % b != 0 || (run.end % b != 0 && run.end != extent)) {
    return {};
  }
  if (run.size() <= b) {
    return fmt::format("the {} {} of {}", ordinal(run.first / b + 1), names.block_name, b);
  }
  return fmt::format("whole {}s of {}", names.block_name, b);
}

std::string tile_note(std::int64_t extent, Run run, std::int64_t wider_than) {
  if (const auto w = widest(extent, run, wider_than, [&](std::int64_t width) { return run.size() == width; })) {
    return fmt::format("the {} tile of {}", ordinal(run.first / *w + 1), *w);
  }
  if (const auto w = widest(extent, run, wider_than, [&](std::int64_t width) { return run.size() < width; })) {
    return fmt::format("the last, partial tile of {}", *w);
  }
  if (const auto w = widest(extent, run, wider_than, [&](std::int64_t width) { return run.end % width == 0; })) {
    return fmt::format("whole tiles of {}", *w);
  }
  return {};
}

std::string edge_note(std::int64_t extent, Run run) {
  for (const std::int64_t w : kTileWidths) {
    if (w < kSmallestSingleEdge) {
      break;
    }
    if (run.first > 0 && run.first % w == 0) {
      return fmt::format("beginning at a multiple of {}", w);
    }
    if (run.end < extent && run.end % w == 0) {
      return fmt::format("ending before a multiple of {}", w);
    }
  }
  return {};
}

}  // namespace attndiff
