#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/compare/compare.h"

namespace attndiff {

/// How large the errors of a tensor's elements are, counted by size and sign. An error is candidate - reference in
/// units of the reference's last place (integers: 1). Class 0 holds errors below one unit, class i > 0 those in
/// [2^(i-1), 2^i), the last class everything larger.
struct ErrorHistogram {
  static constexpr std::size_t kClasses = 20;

  std::string unit;                 ///< "bfloat16 unit", "float32 unit", "1"
  std::int64_t equal = 0;           ///< elements without an error
  std::int64_t nonfinite = 0;       ///< not finite on one side and not the same on the other
  std::vector<std::int64_t> below;  ///< candidate below the reference, kClasses counts
  std::vector<std::int64_t> above;  ///< candidate above it
};

/// The errors of a tensor over two of its axes, the others folded, in at most kMostCells cells along each. A cell is
/// one character: '.' where all its elements are equal; '!' where one is not finite on one side only; else a letter for
/// the largest |d| over the rms of its row (integers: over 1), 'a' below 2^-15, each further letter twice that, 'z'
/// from 2^9. The letter is a capital where an element of the cell is beyond its bound.
struct HeatMap {
  static constexpr std::int64_t kMostCells = 64;

  std::string row_axis;  ///< "token", "head"; by the stage's landmarks
  std::string column_axis;
  std::int64_t row_extent = 0;  ///< indices on that axis
  std::int64_t column_extent = 0;
  std::int64_t row_tile = 1;  ///< indices a cell covers; the last one may cover fewer
  std::int64_t column_tile = 1;
  std::vector<std::string> rows;  ///< one string of cells for each row of cells
};

/// One position that the two sides of a choice treat differently, with the score each side gave it.
struct DisputedPosition {
  std::int64_t position = 0;
  bool by_reference = false;
  bool by_candidate = false;
  std::optional<double> reference_score;  ///< nothing where that side publishes no score of the position
  std::optional<double> candidate_score;
};

/// One row (query) in which two choices differ.
struct DisputedRow {
  static constexpr std::size_t kMostPositions = 16;

  std::int64_t row = 0;
  std::int64_t differing = 0;               ///< positions that one side chose and the other did not
  std::vector<DisputedPosition> positions;  ///< the first kMostPositions of them, ascending
  std::optional<double> reference_margin;   ///< its lowest score chosen minus its highest not chosen, by its own scores
  std::optional<double> candidate_margin;
};

/// What a person needs to see of one comparison beyond its figures. Bounded in size whatever the tensor.
struct ComparisonDetail {
  static constexpr std::size_t kMostElements = 10;
  static constexpr std::size_t kMostRows = 8;

  std::vector<std::int64_t> shape;
  std::vector<std::string> axes;  ///< what an index on each axis of the shape counts: "token", "head", "column"
  ErrorHistogram histogram;
  std::vector<HeatMap> maps;  ///< one for each pair of axes longer than 1, at most three
  /// The first is Comparison::worst; then those beyond their bound, then the others, each by |d| over the row's rms.
  std::vector<ComparedElement> worst;
  std::vector<DisputedRow> disputed;  ///< choices only: the first kMostRows rows that differ
  std::int64_t disputed_rows = 0;     ///< how many rows differ
};

/// The scores a choice was made from, f32 [tokens, positions]; null where a side publishes none.
struct ChoiceScores {
  const Tensor* reference = nullptr;
  const Tensor* candidate = nullptr;
};

/// Looks at two tensors once more. `axes` names the axes of their shape; `result` is what compare() found, with the
/// positions in `bad`. Nothing where shapes or types differ, or where there is no element. Reads every element once
/// more; memory beyond the detail is two rows.
[[nodiscard]] std::optional<ComparisonDetail> detail_of(const StageInfo& stage, std::span<const std::string> axes,
                                                        const Tensor& reference, const Tensor& candidate,
                                                        const Comparison& result, const ChoiceScores& scores);

}  // namespace attndiff
