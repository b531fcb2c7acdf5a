#include "reports/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "reports/text_table.h"

namespace attndiff {
namespace {

/// Comparisons that do not fail the run and share a line of the summary.
struct Group {
  const ComparisonRecord* first = nullptr;
  std::int64_t comparisons = 0;
  std::int64_t elements = 0;
  std::int64_t mismatches = 0;
  double bound_ratio = -1;  ///< below 0: no bound

  [[nodiscard]] bool takes(const ComparisonRecord& c) const noexcept {
    return first->stage == c.stage && first->candidate == c.candidate && first->mode == c.mode &&
           first->result.verdict == c.result.verdict;
  }
  void add(const ComparisonRecord& c) noexcept {
    comparisons += c.result.counted ? 1 : 0;
    elements += c.result.count;
    mismatches += c.result.mismatches;
    bound_ratio = std::max(bound_ratio, c.result.bound_ratio.value_or(-1));
  }
};

bool summarised(const ComparisonRecord& c) noexcept { return info_of(c.result.verdict).effect == VerdictEffect::none; }

std::vector<Group> grouped(const FixtureReport& fixture) {
  std::vector<Group> groups;
  for (const ComparisonRecord& c : fixture.comparisons) {
    if (!summarised(c)) {
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.takes(c); });
    if (group == groups.end()) {
      groups.push_back({.first = &c});
      group = groups.end() - 1;
    }
    group->add(c);
  }
  return groups;
}

std::string summary(const RunReport& report) {
  TextTable table({{"fixture"},
                   {"candidate"},
                   {"mode"},
                   {"stage"},
                   {"verdict"},
                   {"compared", true},
                   {"elements", true},
                   {"differ", true},
                   {"worst |d| / bound", true}});
  for (const FixtureReport& fixture : report.fixtures) {
    for (const Group& g : grouped(fixture)) {
      const bool observed = g.first->result.verdict != Verdict::unobserved;
      const std::string headroom = !observed ? "-" : g.bound_ratio < 0 ? "exact" : fmt::format("{:.3f}", g.bound_ratio);
      table.add({fixture.path, g.first->candidate, g.first->mode, g.first->stage,
                 std::string(name_of(g.first->result.verdict)), fmt::format("{}", g.comparisons),
                 fmt::format("{}", g.elements), fmt::format("{}", g.mismatches), headroom});
    }
  }
  return table.text();
}

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

std::string details(const RunReport& report, bool all) {
  TextTable table({{"fixture"},
                   {"step"},
                   {"layer"},
                   {"candidate"},
                   {"mode"},
                   {"stage"},
                   {"verdict"},
                   {"mismatches", true},
                   {"largest error"}});
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (summarised(c) && !all) {
        continue;
      }
      table.add({fixture.path, step_text(c), fmt::format("{} ({})", c.layer_id, c.layer_kind), c.candidate, c.mode,
                 c.stage, std::string(name_of(c.result.verdict)),
                 fmt::format("{} of {}", c.result.mismatches, c.result.count), error_text(c.result)});
      if (!summarised(c)) {
        table.note(c.result.reason);
        if (c.location.has_value()) {
          table.note(*c.location);
        }
        if (c.known_failure.has_value()) {
          table.note(*c.known_failure);
        }
      }
    }
  }
  return table.text();
}

std::string errors(const RunReport& report) {
  std::string text;
  for (const FixtureReport& fixture : report.fixtures) {
    if (fixture.error.has_value()) {
      // Most messages name the file themselves.
      const bool named = fixture.error->find(fixture.path) != std::string::npos;
      text += fmt::format("error: {}{}\n", named ? "" : fixture.path + ": ", *fixture.error);
    } else if (fixture.verdict == Verdict::unobserved) {
      text += fmt::format("nothing compared: {}\n", fixture.path);
    }
  }
  for (const FixtureReport& fixture : report.fixtures) {
    if (!fixture.uncovered.empty()) {
      text += fmt::format("error: {}: / attribute must_cover: never exercised: {}\n", fixture.path,
                          fmt::join(fixture.uncovered, ", "));
    }
  }
  if (!report.unanswered.empty()) {
    text += fmt::format("asked for and never compared: {}\n", fmt::join(report.unanswered, ", "));
  }
  for (const RunProblem& problem : report.problems) {
    text += fmt::format("{}: {}\n", name_of(reason_of(problem.kind)), problem.message);
  }
  return text;
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

std::string totals_line(const RunReport& report) {
  const Totals totals = totals_of(report);
  std::vector<std::string> parts;
  for (const VerdictInfo& v : verdicts()) {
    if (const std::int64_t n = totals.by_verdict.at(static_cast<std::size_t>(v.verdict)); n > 0) {
      parts.push_back(fmt::format("{} {}", n, v.name));
    }
  }
  return fmt::format("{} fixtures, {} comparisons of {} elements: {}\n{}\n", report.fixtures.size(), totals.comparisons,
                     totals.elements, parts.empty() ? "nothing compared" : fmt::format("{}", fmt::join(parts, ", ")),
                     sentence_of(exit_reason(report)));
}

std::string repro(const RunReport& report) {
  const ComparisonRecord* failure = first_failure(report);
  if (failure == nullptr || failure->repro.empty()) {
    return {};
  }
  return "To see the first failure alone:\n" + failure->repro + "\n";
}

}  // namespace

std::string table_text(const RunReport& report, const TableOptions& options) {
  std::string text = fmt::format("reference {}, candidate {}, mode {}\n", report.reference,
                                 fmt::join(report.candidates, ", "), report.mode);
  const std::vector<std::string> sections{options.verbose ? std::string() : summary(report),
                                          details(report, options.verbose), errors(report), totals_line(report),
                                          repro(report)};
  for (const std::string& section : sections) {
    if (!section.empty()) {
      text += "\n" + section;
    }
  }
  return text;
}

}  // namespace attndiff
