#pragma once

#include <string>
#include <vector>

#include "harness/compare/report.h"

namespace attndiff {

/// Every stage of the run once, each behind the stage that came before it in its layer.
[[nodiscard]] std::vector<std::string> stage_order(const RunReport& report);

}  // namespace attndiff
