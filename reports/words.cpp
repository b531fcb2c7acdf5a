#include "reports/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

namespace attndiff {

std::string step_text(const ComparisonRecord& c) {
  return c.tokens == 1 ? fmt::format("{} (position {})", c.step, c.start_pos)
                       : fmt::format("{} (positions {}..{})", c.step, c.start_pos, c.start_pos + c.tokens - 1);
}

std::string value_text(double value, const std::string& bits) {
  // Nine digits tell any two float32 values apart.
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : fmt::format("{:g} (0x{})", value, bits);
}

std::string error_text(const Comparison& r) {
  if (!r.worst.has_value()) {
    return "-";
  }
  const ComparedElement& w = *r.worst;
  return fmt::format("{:.4g} at [{}]: reference {}, candidate {}", std::fabs(w.candidate - w.reference),
                     fmt::join(w.index, ", "), value_text(w.reference, w.reference_bits),
                     value_text(w.candidate, w.candidate_bits));
}

std::string totals_text(const RunReport& report) {
  const Totals totals = totals_of(report);
  std::vector<std::string> parts;
  for (const VerdictInfo& v : verdicts()) {
    if (const std::int64_t n = totals.by_verdict.at(static_cast<std::size_t>(v.verdict)); n > 0) {
      parts.push_back(fmt::format("{} {}", n, v.name));
    }
  }
  return fmt::format("{} fixtures, {} comparisons of {} elements: {}", report.fixtures.size(), totals.comparisons,
                     totals.elements, parts.empty() ? "nothing compared" : fmt::format("{}", fmt::join(parts, ", ")));
}

std::string_view sentence_of(ExitReason reason) noexcept {
  switch (reason) {
    case ExitReason::passed:
      return "passed";
    case ExitReason::failed:
      return "FAILED";
    case ExitReason::usage_or_input:
      return "NOT PASSED: something given could not be read or makes no sense";
    case ExitReason::unavailable:
      return "NOT PASSED: a backend is not available here";
    case ExitReason::nothing_verified:
      return "NOT PASSED: not everything asked for was compared";
    case ExitReason::internal:
      return "NOT PASSED: internal error, or output that could not be written";
  }
  return "?";
}

std::vector<std::string> error_lines(const RunReport& report) {
  std::vector<std::string> lines;
  for (const FixtureReport& fixture : report.fixtures) {
    if (fixture.error.has_value()) {
      // Most messages name the file themselves.
      const bool named = fixture.error->find(fixture.path) != std::string::npos;
      lines.push_back(fmt::format("error: {}{}", named ? "" : fixture.path + ": ", *fixture.error));
    } else if (fixture.verdict == Verdict::unobserved) {
      lines.push_back(fmt::format("nothing compared: {}", fixture.path));
    }
  }
  for (const FixtureReport& fixture : report.fixtures) {
    if (!fixture.uncovered.empty()) {
      lines.push_back(fmt::format("error: {}: / attribute must_cover: never exercised: {}", fixture.path,
                                  fmt::join(fixture.uncovered, ", ")));
    }
  }
  if (!report.unanswered.empty()) {
    lines.push_back(fmt::format("asked for and never compared: {}", fmt::join(report.unanswered, ", ")));
  }
  for (const RunProblem& problem : report.problems) {
    lines.push_back(fmt::format("{}: {}", name_of(reason_of(problem.kind)), problem.message));
  }
  return lines;
}

}  // namespace attndiff
