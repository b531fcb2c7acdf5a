#include "harness/compare/report.h"

#include <algorithm>

namespace attndiff {
namespace {

bool has_verdict(const FixtureReport& fixture, Verdict verdict) noexcept {
  return std::any_of(fixture.comparisons.begin(), fixture.comparisons.end(), [&](const ComparisonRecord& c) {
    return c.result.verdict == verdict && !c.known_failure.has_value();
  });
}

bool verified_with(const FixtureReport& fixture, const std::string& candidate) noexcept {
  return std::any_of(fixture.comparisons.begin(), fixture.comparisons.end(),
                     [&](const ComparisonRecord& c) { return c.candidate == candidate && c.verified(); });
}

bool anything_verified(const FixtureReport& fixture) noexcept {
  return std::any_of(fixture.comparisons.begin(), fixture.comparisons.end(),
                     [](const ComparisonRecord& c) { return c.verified(); });
}

bool any_failure(const FixtureReport& fixture) noexcept {
  return fails_run(fixture.verdict) || std::any_of(fixture.comparisons.begin(), fixture.comparisons.end(),
                                                   [](const ComparisonRecord& c) { return c.fails(); });
}

bool bad_input(const FixtureReport& fixture) noexcept {
  return fixture.error.has_value() || !fixture.uncovered.empty() || fixture.verdict == Verdict::error ||
         has_verdict(fixture, Verdict::error);
}

/// What this fixture alone would make of the run.
ExitReason reason_of(const FixtureReport& fixture, const std::vector<std::string>& candidates) noexcept {
  if (any_failure(fixture)) {
    return ExitReason::failed;
  }
  if (bad_input(fixture)) {
    return ExitReason::usage_or_input;
  }
  const bool all_compared = std::all_of(candidates.begin(), candidates.end(),
                                        [&](const std::string& name) { return verified_with(fixture, name); });
  return all_compared && anything_verified(fixture) ? ExitReason::passed : ExitReason::nothing_verified;
}

}  // namespace

bool ComparisonRecord::fails() const noexcept { return fails_run(result.verdict) && !known_failure.has_value(); }

bool ComparisonRecord::verified() const noexcept { return result.counted && info_of(result.verdict).verified; }

std::string_view name_of(ExitReason reason) noexcept {
  switch (reason) {
    case ExitReason::passed:
      return "passed";
    case ExitReason::failed:
      return "failed";
    case ExitReason::usage_or_input:
      return "usage_or_input";
    case ExitReason::unavailable:
      return "unavailable";
    case ExitReason::nothing_verified:
      return "nothing_verified";
    case ExitReason::internal:
      return "internal";
  }
  return "?";
}

std::string_view name_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::input:
      return "input";
    case ErrorKind::refused:
      return "refused";
    case ErrorKind::unavailable:
      return "unavailable";
    case ErrorKind::output:
      return "output";
    case ErrorKind::internal:
      return "internal";
  }
  return "?";
}

ExitReason reason_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::input:
    case ErrorKind::refused:
      return ExitReason::usage_or_input;
    case ErrorKind::unavailable:
      return ExitReason::unavailable;
    case ErrorKind::output:
    case ErrorKind::internal:
      return ExitReason::internal;
  }
  return ExitReason::internal;
}

Verdict overall_verdict(const FixtureReport& fixture) noexcept {
  for (const Verdict v :
       {Verdict::crashed, Verdict::fail, Verdict::missing, Verdict::uncertified, Verdict::degenerate}) {
    if (has_verdict(fixture, v)) {
      return v;
    }
  }
  if (fixture.error.has_value() || !fixture.uncovered.empty() || has_verdict(fixture, Verdict::error)) {
    return Verdict::error;
  }
  for (const Verdict v : {Verdict::explained, Verdict::tie}) {
    if (has_verdict(fixture, v)) {
      return v;
    }
  }
  return anything_verified(fixture) ? Verdict::pass : Verdict::unobserved;
}

ExitReason exit_reason(const RunReport& report) noexcept {
  const Totals totals = totals_of(report);
  for (const ExitReason r : {ExitReason::failed, ExitReason::internal, ExitReason::unavailable,
                             ExitReason::usage_or_input, ExitReason::nothing_verified, ExitReason::passed}) {
    if (totals.by_exit_reason.at(static_cast<std::size_t>(r)) > 0) {
      return r;
    }
  }
  return ExitReason::nothing_verified;
}

Totals totals_of(const RunReport& report) noexcept {
  Totals totals;
  for (const FixtureReport& fixture : report.fixtures) {
    ++totals.by_exit_reason[static_cast<std::size_t>(reason_of(fixture, report.candidates))];
    if (fixture.error.has_value()) {
      ++totals.by_verdict[static_cast<std::size_t>(Verdict::error)];
    }
    for (const ComparisonRecord& c : fixture.comparisons) {
      ++totals.by_verdict[static_cast<std::size_t>(c.result.verdict)];
      totals.comparisons += c.result.counted ? 1 : 0;
      totals.elements += c.result.count;
    }
  }
  totals.by_exit_reason[static_cast<std::size_t>(ExitReason::nothing_verified)] +=
      static_cast<std::int64_t>(report.unanswered.size());
  for (const RunProblem& problem : report.problems) {
    ++totals.by_exit_reason[static_cast<std::size_t>(reason_of(problem.kind))];
  }
  return totals;
}

const ComparisonRecord* first_failure(const RunReport& report) noexcept {
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (c.fails()) {
        return &c;
      }
    }
  }
  return nullptr;
}

}  // namespace attndiff
