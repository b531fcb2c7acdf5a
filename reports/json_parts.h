#pragma once

#include <nlohmann/json_fwd.hpp>

#include "harness/compare/compare.h"
#include "harness/compare/detail.h"

namespace attndiff {

/// Parts of the JSON report that other reports hold too.
[[nodiscard]] nlohmann::ordered_json element_json(const ComparedElement& element);
[[nodiscard]] nlohmann::ordered_json detail_json(const ComparisonDetail& detail);

}  // namespace attndiff
