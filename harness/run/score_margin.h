#pragma once

#include <cstdint>
#include <optional>

#include "harness/compare/tolerance.h"
#include "harness/run/judge.h"

namespace attndiff {

/// How far a selection that nothing certifies is from the reference's.
struct MarginFinding {
  std::int64_t rows = 0;  ///< that differ
  double farthest = 0;    ///< of a position that one side picked, from the reference's threshold, in rms of the row
  bool within_limits = false;  ///< of the stage's tolerance: score margin and share of rows

  friend bool operator==(const MarginFinding&, const MarginFinding&) = default;
};

/// Measures the candidate's picks of an index stage by the reference's own scores: of each position that only one side
/// picked, the distance from the lowest score that the reference picked in that row, over the rms of the row's finite
/// scores. Nothing where the tolerance sets no margin, the call has no scores, or the picks are no ascending set of
/// positions that the reference could pick as many of.
[[nodiscard]] std::optional<MarginFinding> score_margin(const StageInfo& stage, const StageTolerance& tolerance,
                                                        const FreeEvidence& evidence);

/// Whether each row of a selection ascends, apart from absent entries: set operations need it, and so does the format.
[[nodiscard]] bool ascending_sets(const Tensor& picks);

}  // namespace attndiff
