#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/report.h"

namespace attndiff {

/// "3 (positions 0..20)", "2 (position 41)".
[[nodiscard]] std::string step_text(const ComparisonRecord& c);
/// "0.5 at [0, 3]: reference 0.5, candidate nan (0x7fc0)", or "-" where there is no element.
[[nodiscard]] std::string error_text(const Comparison& r);
/// A value with the digits that tell any two float32 apart; what is not finite with its bits.
[[nodiscard]] std::string value_text(double value, const std::string& bits);
/// "5 fixtures, 4217 comparisons of 2729228 elements: 4217 pass".
[[nodiscard]] std::string totals_text(const RunReport& report);
/// How the run ended, in a sentence.
[[nodiscard]] std::string_view sentence_of(ExitReason reason) noexcept;
/// What went wrong outside comparisons, a line each: fixtures in error or without a comparison, uncovered counters,
/// what was asked for and not compared, problems.
[[nodiscard]] std::vector<std::string> error_lines(const RunReport& report);

}  // namespace attndiff
