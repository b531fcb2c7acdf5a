#pragma once

#include <string>

#include "harness/compare/report.h"

namespace attndiff {

/// The report as one HTML file that needs nothing else: no network, opens from disk. It answers, in this order: did it
/// pass; where is the first wrong stage; how wrong, and where in the tensor; how to make it again. A comparison that
/// simply passed has its figures only; every other one its reason, location and worst element too.
[[nodiscard]] std::string html_text(const RunReport& report);

/// Replaces each {{NAME}} of the text by its value. What values hold is not looked at again.
[[nodiscard]] std::string filled(std::string_view text, const std::map<std::string, std::string, std::less<>>& values);

}  // namespace attndiff
