#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/compare/detail.h"
#include "reference/contract/stage.h"
#include "reference/contract/tensor.h"

namespace attndiff {

/// Builds one heat map, an element at a time.
class HeatMapBuilder {
 public:
  /// Over two different axes of the shape, or of one (then `row_axis` is shape.rank(), and the map has one row).
  HeatMapBuilder(const Shape& shape, std::size_t row_axis, std::size_t column_axis, std::span<const std::string> names);

  /// An element that differs. Of two letters in a cell the larger error stays, '!' before all.
  void add(std::int64_t flat, char letter, bool beyond);

  [[nodiscard]] HeatMap take() &&;

 private:
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t stride = 1;
    std::int64_t tile = 1;

    [[nodiscard]] std::size_t cell_of(std::int64_t flat) const noexcept {
      return static_cast<std::size_t>(flat / stride % extent / tile);
    }
    [[nodiscard]] std::size_t cells() const noexcept { return static_cast<std::size_t>((extent + tile - 1) / tile); }
  };

  static Axis axis_of(const Shape& shape, std::size_t axis);

  Axis row_;
  Axis column_;
  HeatMap map_;
};

/// A map for each pair of axes longer than 1, at most three: the first two, the first and the last, the last two. One
/// axis alone gives one map of a single row. `names` holds one name an axis.
[[nodiscard]] std::vector<HeatMapBuilder> heat_maps(const Shape& shape, std::span<const std::string> names);

/// Elements from `begin` on as doubles. Throws Error(internal) for e4m3.
void read_row(const Tensor& tensor, std::int64_t begin, std::span<double> row);

/// Sets `disputed` and `disputed_rows`: the rows in which two choices of one shape differ. An index tensor chooses the
/// positions it lists, a mask those it marks.
void add_disputes(StageKind kind, const Tensor& reference, const Tensor& candidate, const ChoiceScores& scores,
                  ComparisonDetail& detail);

}  // namespace attndiff
