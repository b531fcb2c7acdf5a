#pragma once

#include <string>

#include "harness/compare/report.h"

namespace attndiff {

/// The report as JUnit XML. A suite is a fixture; a case is a stage of a layer with one candidate in one mode, its
/// steps taken together. A case fails with the first of its comparisons that does; its text has the reason and the
/// repro command of each. Properties hold comparisons, steps, mismatches, the largest error and the largest error over
/// its bound. A stage that could not be observed, and a failure that a list of known failures excuses, are skipped
/// cases. What went wrong outside comparisons is a case with an error.
[[nodiscard]] std::string junit_text(const RunReport& report);

}  // namespace attndiff
