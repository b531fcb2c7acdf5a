#include "reports/junit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "reports/escape.h"
#include "reports/words.h"

namespace attndiff {
namespace {

/// The comparisons of one stage of a layer with one candidate in one mode.
struct Case {
  std::vector<const ComparisonRecord*> steps;

  [[nodiscard]] bool takes(const ComparisonRecord& c) const noexcept {
    const ComparisonRecord& first = *steps.front();
    return first.layer_id == c.layer_id && first.stage == c.stage && first.candidate == c.candidate &&
           first.mode == c.mode;
  }
  [[nodiscard]] bool fails() const noexcept {
    return std::any_of(steps.begin(), steps.end(), [](const auto* c) { return c->fails(); });
  }
  /// Why nothing here counts as a pass, or nothing.
  [[nodiscard]] std::optional<std::string> skipped() const {
    const auto excused =
        std::find_if(steps.begin(), steps.end(), [](const auto* c) { return c->known_failure.has_value(); });
    if (excused != steps.end()) {
      return (*excused)->known_failure;
    }
    const bool verified = std::any_of(steps.begin(), steps.end(), [](const auto* c) { return c->verified(); });
    return verified ? std::nullopt : std::optional(steps.front()->result.reason);
  }
};

/// A suite's cases as text, with their numbers.
struct Suite {
  std::string name;
  std::string properties;
  std::string cases;
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;

  void add_error(const std::string& case_name, const std::string& kind, const std::string& message) {
    ++tests;
    ++errors;
    cases += fmt::format(
        "  <testcase classname=\"{}\" name=\"{}\">\n   <error type=\"{}\" message=\"{}\"/>\n  </testcase>\n",
        xml_escaped(name), xml_escaped(case_name), xml_escaped(kind), xml_escaped(message));
  }

  [[nodiscard]] std::string text() const {
    return fmt::format(
        " <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}{} </testsuite>\n",
        xml_escaped(name), tests, failures, errors, skipped, properties, cases);
  }
};

std::string property(std::string_view name, const std::string& value) {
  return fmt::format("    <property name=\"{}\" value=\"{}\"/>\n", name, xml_escaped(value));
}

std::string properties_of(const Case& c) {
  std::int64_t mismatches = 0;
  double max_abs = 0;
  std::optional<double> bound_ratio;
  std::vector<std::size_t> steps;
  for (const ComparisonRecord* record : c.steps) {
    const Comparison& r = record->result;
    mismatches += r.mismatches;
    max_abs = std::max(max_abs, r.max_abs);
    if (r.bound_ratio.has_value()) {
      bound_ratio = std::max(bound_ratio.value_or(0), *r.bound_ratio);
    }
    steps.push_back(record->step);
  }
  return "   <properties>\n" + property("steps", fmt::format("{}", fmt::join(steps, ","))) +
         property("mismatches", std::to_string(mismatches)) + property("max_abs", fmt::format("{:.6g}", max_abs)) +
         property("bound_ratio", bound_ratio.has_value() ? fmt::format("{:.6g}", *bound_ratio) : "exact") +
         property("tolerance", c.steps.front()->tolerance) + "   </properties>\n";
}

/// One line that says which comparison failed and why.
std::string failure_line(const ComparisonRecord& c) {
  return fmt::format("step {}: {}: {}", step_text(c), name_of(c.result.verdict), c.result.reason);
}

std::string failure_text(const ComparisonRecord& c) {
  return fmt::format("{}\n{}\n{}{}\n", failure_line(c), error_text(c.result),
                     c.location.has_value() ? *c.location + "\n" : "", c.repro);
}

std::string failure_of(const Case& c) {
  const ComparisonRecord* first = nullptr;
  std::string all;
  for (const ComparisonRecord* record : c.steps) {
    if (record->fails()) {
      first = first == nullptr ? record : first;
      all += failure_text(*record);
    }
  }
  return fmt::format("   <failure type=\"{}\" message=\"{}\">{}</failure>\n", name_of(first->result.verdict),
                     xml_escaped(failure_line(*first)), xml_escaped(all));
}

void add_case(Suite& suite, const Case& c) {
  const ComparisonRecord& first = *c.steps.front();
  const std::string class_name =
      fmt::format("{}.{}.{}.layer {}", suite.name, first.candidate, first.mode, first.layer_id);
  ++suite.tests;
  std::string outcome;
  if (c.fails()) {
    ++suite.failures;
    outcome = failure_of(c);
  } else if (const std::optional<std::string> why = c.skipped(); why.has_value()) {
    ++suite.skipped;
    outcome = fmt::format("   <skipped message=\"{}\"/>\n", xml_escaped(*why));
  }
  suite.cases += fmt::format("  <testcase classname=\"{}\" name=\"{}\">\n{}{}  </testcase>\n", xml_escaped(class_name),
                             xml_escaped(first.stage), properties_of(c), outcome);
}

Suite suite_of(const FixtureReport& fixture) {
  Suite suite;
  suite.name = fixture.path;
  std::vector<Case> cases;
  for (const ComparisonRecord& c : fixture.comparisons) {
    const auto here = std::find_if(cases.begin(), cases.end(), [&](const Case& known) { return known.takes(c); });
    if (here == cases.end()) {
      cases.push_back({{&c}});
    } else {
      here->steps.push_back(&c);
    }
  }
  for (const Case& c : cases) {
    add_case(suite, c);
  }
  if (fixture.error.has_value()) {
    suite.add_error("fixture", "error", *fixture.error);
  } else if (fixture.verdict == Verdict::unobserved) {
    suite.add_error("fixture", "unobserved", "nothing was compared");
  }
  if (!fixture.uncovered.empty()) {
    suite.add_error("must_cover", "error", fmt::format("never exercised: {}", fmt::join(fixture.uncovered, ", ")));
  }
  return suite;
}

/// What belongs to no fixture.
Suite run_suite(const RunReport& report) {
  Suite suite;
  suite.name = "attndiff";
  for (const std::string& what : report.unanswered) {
    suite.add_error(what, "nothing_verified", "asked for and never compared");
  }
  for (const RunProblem& problem : report.problems) {
    suite.add_error(std::string(name_of(problem.kind)), std::string(name_of(reason_of(problem.kind))), problem.message);
  }
  if (report.fixtures.empty()) {
    suite.add_error("fixtures", "nothing_verified", "the run had no fixture");
  }
  return suite;
}

}  // namespace

std::string junit_text(const RunReport& report) {
  std::vector<Suite> suites;
  for (const FixtureReport& fixture : report.fixtures) {
    suites.push_back(suite_of(fixture));
  }
  if (Suite run = run_suite(report); run.tests > 0) {
    suites.push_back(std::move(run));
  }
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;
  std::string text;
  for (const Suite& suite : suites) {
    tests += suite.tests;
    failures += suite.failures;
    errors += suite.errors;
    skipped += suite.skipped;
    text += suite.text();
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"attndiff\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}</testsuites>\n",
      tests, failures, errors, skipped, text);
}

}  // namespace attndiff
