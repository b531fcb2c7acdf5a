#include "harness/compare/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "harness/compare/axis_pattern.h"
#include "reference/deepseek_v41/landmarks.h"

namespace attndiff {
namespace {

/// Share of a product of index sets from which on its elements are taken to be wrong as a whole.
constexpr double kDenseShare = 0.75;
/// Share of a region across axes from which on it is named.
constexpr double kRegionShare = 0.9;
/// Most elements that are listed one by one.
constexpr std::size_t kMostListed = 4;

class Locator {
 public:
  Locator(const Landmarks& landmarks, const Shape& shape, std::span<const std::int64_t> bad)
      : landmarks_(landmarks), shape_(shape), strides_(shape.strides()), bad_(bad), sets_(shape.rank()) {
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      names_.push_back(landmarks.axes.size() == shape.rank() ? landmarks.axes[axis] : unnamed(axis));
      collect(axis);
    }
  }

  [[nodiscard]] std::string text() const {
    if (bad_.empty()) {
      return "no element";
    }
    const double share = static_cast<double>(bad_.size()) / product();
    if (static_cast<std::int64_t>(bad_.size()) == shape_.count()) {
      return shape_.count() == 1 ? "the only element" : fmt::format("every element, all {}", shape_.count());
    }
    if (bad_.size() == 1 || share == 1) {
      return dense(share);
    }
    if (bad_.size() <= kMostListed) {
      return few();
    }
    if (const auto region = filled_region()) {
      return *region;
    }
    return share >= kDenseShare ? dense(share) : sparse(share);
  }

 private:
  static AxisNames unnamed(std::size_t axis) {
    return {.one = fmt::format("index on axis {}", axis), .many = fmt::format("indices on axis {}", axis)};
  }

  /// The indices of bad elements on one axis.
  void collect(std::size_t axis) {
    std::vector<bool> member(static_cast<std::size_t>(shape_[axis]));
    for (const std::int64_t flat : bad_) {
      member[static_cast<std::size_t>(index(flat, axis))] = true;
    }
    for (std::size_t i = 0; i < member.size(); ++i) {
      if (member[i]) {
        sets_[axis].push_back(static_cast<std::int64_t>(i));
      }
    }
  }

  [[nodiscard]] std::int64_t index(std::int64_t flat, std::size_t axis) const {
    return flat / strides_[axis] % shape_[axis];
  }

  /// Elements of the product of the axes' sets.
  [[nodiscard]] double product() const {
    double count = 1;
    for (const auto& set : sets_) {
      count *= static_cast<double>(set.size());
    }
    return count;
  }

  [[nodiscard]] std::string how_many() const { return fmt::format("{} of {} elements", bad_.size(), shape_.count()); }

  static std::string percent(double share) {
    const double percents = 100 * share;
    return percents < 0.1 ? "under 0.1 %" : fmt::format("{:.{}f} %", percents, percents < 10 ? 1 : 0);
  }

  /// Axes of extent 1 say nothing and are left out.
  [[nodiscard]] std::vector<AxisFinding> findings(Spread spread) const {
    std::vector<AxisFinding> found;
    for (std::size_t axis = 0; axis < sets_.size(); ++axis) {
      if (shape_[axis] > 1) {
        found.push_back(read_axis(names_[axis], shape_[axis], sets_[axis], spread));
      }
    }
    return found;
  }

  static std::string texts(const std::vector<AxisFinding>& found) {
    std::vector<std::string> parts;
    std::transform(found.begin(), found.end(), std::back_inserter(parts), [](const AxisFinding& f) { return f.text; });
    return fmt::format("{}", fmt::join(parts, "; "));
  }

  /// One index on every axis but the innermost, and all of that.
  [[nodiscard]] bool whole_row() const {
    return sets_.size() > 1 && static_cast<std::int64_t>(sets_.back().size()) == shape_[sets_.size() - 1] &&
           std::all_of(sets_.begin(), sets_.end() - 1, [](const auto& set) { return set.size() == 1; });
  }

  [[nodiscard]] std::string dense(double share) const {
    std::string text = how_many() + ": " + texts(findings(Spread::dense));
    if (share < 1) {
      text += fmt::format("; {} of the elements there", percent(share));
    } else if (bad_.size() > 1 && whole_row()) {
      text += ": one whole row";
    }
    if (bad_.size() == 1 && bad_[0] == shape_.count() - 1) {
      text += "; the last element of all";
    }
    return text;
  }

  [[nodiscard]] std::string few() const {
    std::vector<std::string> items;
    std::transform(bad_.begin(), bad_.end(), std::back_inserter(items),
                   [&](std::int64_t flat) { return index_text(shape_, flat); });
    std::string text = how_many() + ": " + listed(items);
    for (std::size_t axis = 0; axis < sets_.size(); ++axis) {
      if (shape_[axis] > 1 && sets_[axis].size() == 1) {
        text += "; all in " + read_axis(names_[axis], shape_[axis], sets_[axis], Spread::dense).text;
      }
    }
    return text;
  }

  [[nodiscard]] bool inside(const Region& region, std::int64_t flat) const {
    std::array<std::int64_t, Shape::kMaxRank> at{};
    for (std::size_t axis = 0; axis < shape_.rank(); ++axis) {
      at.at(axis) = index(flat, axis);
    }
    return region.holds({at.data(), shape_.rank()});
  }

  [[nodiscard]] bool holds_all(const Region& region) const {
    return std::all_of(bad_.begin(), bad_.end(), [&](std::int64_t flat) { return inside(region, flat); });
  }

  [[nodiscard]] std::int64_t size_of(const Region& region) const {
    std::int64_t size = 0;
    for (std::int64_t flat = 0; flat < shape_.count(); ++flat) {
      size += inside(region, flat) ? 1 : 0;
    }
    return size;
  }

  [[nodiscard]] std::optional<std::string> filled_region() const {
    for (const Region& region : landmarks_.regions) {
      if (!holds_all(region)) {
        continue;
      }
      const double share = static_cast<double>(bad_.size()) / static_cast<double>(size_of(region));
      if (share >= kRegionShare) {
        return fmt::format("{}: {}{}", how_many(), region.text,
                           share < 1 ? fmt::format("; {} of the elements there", percent(share)) : "");
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> surrounding_region() const {
    for (const Region& region : landmarks_.regions) {
      if (holds_all(region) &&
          chance_of(shape_.count(), size_of(region), static_cast<std::int64_t>(bad_.size())) < kChance) {
        return region.text;
      }
    }
    return std::nullopt;
  }

  /// True where the axis tells where to look; a few indices of scattered elements do not.
  static bool narrows(const AxisFinding& f) {
    return f.reading == AxisReading::single || f.reading == AxisReading::pattern;
  }

  [[nodiscard]] std::string sparse(double share) const {
    const std::vector<AxisFinding> found = findings(Spread::sparse);
    std::string text = how_many() + ", scattered: " + texts(found);
    if (const auto region = surrounding_region()) {
      return text + "; all in " + *region;
    }
    if (std::any_of(found.begin(), found.end(), [](const AxisFinding& f) { return narrows(f); })) {
      return text + fmt::format("; {} of the elements there", percent(share));
    }
    return text + "; they line up with nothing";
  }

  const Landmarks& landmarks_;
  Shape shape_;
  Shape strides_;
  std::span<const std::int64_t> bad_;
  std::vector<AxisNames> names_;
  std::vector<std::vector<std::int64_t>> sets_;
};

}  // namespace

std::string locate(const Landmarks& landmarks, const Shape& shape, std::span<const std::int64_t> bad) {
  return Locator(landmarks, shape, bad).text();
}

std::string locate(const StageInfo& stage, const ModelConfig& config, const LayerRole& role, const CallShape& call,
                   const Shape& shape, std::span<const std::int64_t> bad) {
  return locate(deepseek_v41::landmarks(stage, config, role, call), shape, bad);
}

}  // namespace attndiff
