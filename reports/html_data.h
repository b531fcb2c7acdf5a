#pragma once

#include <nlohmann/json_fwd.hpp>

#include "harness/compare/report.h"

namespace attndiff {

/// What the page shows, compactly: comparisons as columns of numbers into lists of runs (a fixture with a candidate in
/// a mode), steps, layers, stages, verdicts and texts; what only some comparisons have stands in `more`, by number.
[[nodiscard]] nlohmann::ordered_json html_data(const RunReport& report);

}  // namespace attndiff
