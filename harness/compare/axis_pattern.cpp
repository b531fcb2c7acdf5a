#include "harness/compare/axis_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "harness/compare/tile_notes.h"

namespace attndiff {
namespace {

/// Most indices that are listed one by one.
constexpr std::size_t kMostListed = 6;

std::string in_brackets(const std::vector<std::string>& notes) {
  return notes.empty() ? "" : fmt::format(" ({})", fmt::join(notes, "; "));
}

class AxisReader {
 public:
  AxisReader(const AxisNames& names, std::int64_t extent, std::span<const std::int64_t> set)
      : names_(names), extent_(extent), set_(set), size_(static_cast<std::int64_t>(set.size())) {}

  [[nodiscard]] AxisFinding dense() const {
    if (const auto found = whole()) {
      return *found;
    }
    if (size_ == 1) {
      return {AxisReading::single, one(set_[0])};
    }
    if (contiguous()) {
      return {AxisReading::places, run_text({set_.front(), set_.back() + 1})};
    }
    if (const auto found = regular()) {
      return *found;
    }
    if (extent_ - size_ == 1 && extent_ > static_cast<std::int64_t>(kMostListed)) {
      return {AxisReading::places, fmt::format("every {} but {}", names_.one, one(only_other()))};
    }
    return listed_or(counted());
  }

  [[nodiscard]] AxisFinding sparse() const {
    if (const auto found = whole()) {
      return *found;
    }
    if (size_ == 1) {
      return {AxisReading::single, one(set_[0])};
    }
    if (contiguous() && chance_of(extent_, size_, size_) * static_cast<double>(extent_ - size_ + 1) < kChance) {
      return {AxisReading::pattern, run_text({set_.front(), set_.back() + 1})};
    }
    if (const auto found = regular()) {
      return *found;
    }
    if (const auto found = surrounding()) {
      return *found;
    }
    return listed_or(counted());
  }

 private:
  [[nodiscard]] std::optional<AxisFinding> whole() const {
    if (size_ != extent_) {
      return std::nullopt;
    }
    return AxisFinding{AxisReading::every, fmt::format("every {}", names_.one)};
  }

  [[nodiscard]] bool contiguous() const { return set_.back() - set_.front() + 1 == size_; }

  [[nodiscard]] std::int64_t only_other() const {
    const auto gap = std::adjacent_find(set_.begin(), set_.end(), [](auto a, auto b) { return b != a + 1; });
    return gap != set_.end() ? *gap + 1 : set_.front() == 0 ? extent_ - 1 : 0;
  }

  [[nodiscard]] std::string label(std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    return at < names_.labels.size() ? names_.labels[at] : std::to_string(i);
  }

  /// "slot 3 (the newest token's slot)".
  [[nodiscard]] std::string one(std::int64_t i) const {
    std::vector<std::string> notes = landmarks_equal({i, i + 1});
    if (names_.labels.empty() && notes.empty() && extent_ > 1) {
      if (i == 0) {
        notes.emplace_back("the first");
      } else if (i == extent_ - 1) {
        notes.emplace_back("the last");
      }
    }
    return fmt::format("{} {}{}", names_.one, label(i), in_brackets(notes));
  }

  [[nodiscard]] std::int64_t size_of(const Landmark& mark) const {
    std::int64_t size = 0;
    for (std::int64_t i = 0; i < extent_; ++i) {
      size += mark.holds(i) ? 1 : 0;
    }
    return size;
  }

  [[nodiscard]] bool inside(const Landmark& mark) const {
    return std::all_of(set_.begin(), set_.end(), [&](std::int64_t i) { return mark.holds(i); });
  }

  [[nodiscard]] std::vector<std::string> landmarks_equal(Run run) const {
    std::vector<std::string> notes;
    for (const Landmark& mark : names_.landmarks) {
      bool all = true;
      for (std::int64_t i = run.first; i < run.end && all; ++i) {
        all = mark.holds(i);
      }
      if (all && size_of(mark) == run.size()) {
        notes.push_back(mark.text);
      }
    }
    return notes;
  }

  [[nodiscard]] std::string numbers(Run run) const {
    return fmt::format("{} {}-{}", names_.many, run.first, run.end - 1);
  }

  [[nodiscard]] std::string run_text(Run run) const {
    std::vector<std::string> notes = landmarks_equal(run);
    const std::string block = block_note(names_, extent_, run);
    if (!block.empty()) {
      notes.push_back(block);
    }
    if (const std::string tile = tile_note(extent_, run, block.empty() ? 0 : names_.block); !tile.empty()) {
      notes.push_back(tile);
    }
    // A landmark's or block's edges say nothing more than the landmark.
    if (const std::string edge = edge_note(extent_, run); notes.empty() && !edge.empty()) {
      notes.push_back(edge);
    }
    return numbers(run) + in_brackets(notes);
  }

  /// A set that is a landmark in pieces, repeats with a period, or is made of whole tiles.
  [[nodiscard]] std::optional<AxisFinding> regular() const {
    if (chance_of(extent_, size_, size_) >= kChance) {
      return std::nullopt;
    }
    for (const Landmark& mark : names_.landmarks) {
      if (inside(mark) && size_of(mark) == size_) {
        return AxisFinding{AxisReading::pattern, fmt::format("{} {}", size_, names_.many) + in_brackets({mark.text})};
      }
    }
    std::optional<AxisFinding> repeated = periodic();
    return repeated ? repeated : whole_tiles();
  }

  [[nodiscard]] std::vector<bool> members() const {
    std::vector<bool> member(static_cast<std::size_t>(extent_));
    for (const std::int64_t i : set_) {
      member[static_cast<std::size_t>(i)] = true;
    }
    return member;
  }

  /// The smallest period, a power of two, under which the set repeats two times or more as one run each time.
  [[nodiscard]] std::optional<AxisFinding> periodic() const {
    const std::vector<bool> member = members();
    for (std::int64_t period = 2; period <= kTileWidths[0] && 2 * period <= extent_; period *= 2) {
      const auto step = static_cast<std::ptrdiff_t>(period);
      if (!std::equal(member.begin() + step, member.end(), member.begin())) {
        continue;
      }
      const auto first = std::find(member.begin(), member.begin() + step, true);
      const auto end = std::find(first, member.begin() + step, false);
      if (std::find(end, member.begin() + step, true) != member.begin() + step) {
        return std::nullopt;
      }
      return AxisFinding{AxisReading::pattern, periodic_text(period, {first - member.begin(), end - member.begin()})};
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string periodic_text(std::int64_t period, Run run) const {
    if (period == 2) {
      return fmt::format("the {} {}", run.first == 0 ? "even" : "odd", names_.many);
    }
    const std::string which = run.size() == 1 ? fmt::format("{} {}", names_.one, run.first) : numbers(run);
    if (period == names_.block) {
      return fmt::format("{} of every {} of {}", which, names_.block_name, period);
    }
    return fmt::format("{} of every {}", which, period);
  }

  [[nodiscard]] std::optional<AxisFinding> whole_tiles() const {
    const std::vector<bool> member = members();
    for (const std::int64_t w : kTileWidths) {
      std::vector<std::string> tiles;
      bool whole = 2 * w <= extent_;
      for (std::int64_t at = 0; at < extent_ && whole; at += w) {
        const auto begin = member.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = member.begin() + static_cast<std::ptrdiff_t>(std::min(at + w, extent_));
        whole = std::all_of(begin, end, [&](bool m) { return m == *begin; });
        if (*begin) {
          tiles.push_back(std::to_string(at / w));
        }
      }
      if (whole) {
        const bool few = tiles.size() <= kMostListed;
        return AxisFinding{AxisReading::pattern,
                           fmt::format("{} {} ({})", size_, names_.many,
                                       few ? fmt::format("tiles {} of {}, counted from 0", listed(tiles), w)
                                           : fmt::format("{} whole tiles of {}", tiles.size(), w))};
      }
    }
    return std::nullopt;
  }

  /// A landmark that is one run, with its numbers; else its name.
  [[nodiscard]] std::string landmark_text(const Landmark& mark) const {
    Run run{extent_, 0};
    for (std::int64_t i = 0; i < extent_; ++i) {
      if (mark.holds(i)) {
        run = {std::min(run.first, i), i + 1};
      }
    }
    return run.size() == size_of(mark) ? run_text(run) : mark.text;
  }

  /// The smallest landmark, tile or block around a sparse set, if that is no accident.
  [[nodiscard]] std::optional<AxisFinding> surrounding() const {
    struct Around {
      std::int64_t size;
      std::string text;
    };
    std::optional<Around> best;
    const auto offer = [&](std::int64_t size, const std::string& text) {
      if (size < extent_ && (!best || size < best->size) && chance_of(extent_, size, size_) < kChance) {
        best = {size, text};
      }
    };
    for (const Landmark& mark : names_.landmarks) {
      if (inside(mark)) {
        offer(size_of(mark), landmark_text(mark));
      }
    }
    for (const std::int64_t w : kTileWidths) {
      const std::int64_t first = set_.front() / w * w;
      if (set_.back() / w * w == first) {
        const Run tile{first, std::min(first + w, extent_)};
        offer(tile.size(), run_text(tile));
      }
    }
    for (const std::int64_t odd : {0, 1}) {
      if (std::all_of(set_.begin(), set_.end(), [&](std::int64_t i) { return i % 2 == odd; })) {
        offer((extent_ + 1 - odd) / 2, fmt::format("the {} {}", odd == 0 ? "even" : "odd", names_.many));
      }
    }
    if (!best) {
      return std::nullopt;
    }
    return AxisFinding{AxisReading::pattern, fmt::format("{} {}, all in {}", size_, names_.many, best->text)};
  }

  [[nodiscard]] AxisFinding counted() const {
    return {AxisReading::count, fmt::format("{} of {} {}", size_, extent_, names_.many)};
  }

  [[nodiscard]] AxisFinding listed_or(AxisFinding otherwise) const {
    if (set_.size() > kMostListed) {
      return otherwise;
    }
    std::vector<std::string> items;
    std::transform(set_.begin(), set_.end(), std::back_inserter(items), [&](std::int64_t i) { return label(i); });
    return {AxisReading::places, fmt::format("{} {}", names_.many, listed(items))};
  }

  const AxisNames& names_;
  std::int64_t extent_;
  std::span<const std::int64_t> set_;
  std::int64_t size_;
};

}  // namespace

AxisFinding read_axis(const AxisNames& names, std::int64_t extent, std::span<const std::int64_t> indices,
                      Spread spread) {
  const AxisReader reader(names, extent, indices);
  return spread == Spread::dense ? reader.dense() : reader.sparse();
}

double chance_of(std::int64_t total, std::int64_t within, std::int64_t drawn) {
  if (drawn > within) {
    return 0;
  }
  // C(within, drawn) / C(total, drawn), in logarithms since both overflow.
  const auto log_factorial = [](std::int64_t n) { return std::lgamma(static_cast<double>(n) + 1.0); };
  return std::exp(log_factorial(within) - log_factorial(within - drawn) - log_factorial(total) +
                  log_factorial(total - drawn));
}

std::string listed(std::span<const std::string> items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += i == 0 ? "" : i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

}  // namespace attndiff
