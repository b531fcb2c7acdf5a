#pragma once

#include <string>

#include "harness/compare/report.h"

namespace attndiff {

/// Workflow commands that make GitHub show a run's failures on the pull request: `::error ...` for each failing
/// comparison (the first kMostAnnotations, then one for the rest) and each error outside comparisons, `::warning ...`
/// for a failure that is excused. Lines end in a newline; nothing for a run without any.
[[nodiscard]] std::string annotations_text(const RunReport& report);

/// GitHub shows ten errors of a step.
inline constexpr std::size_t kMostAnnotations = 9;

}  // namespace attndiff
