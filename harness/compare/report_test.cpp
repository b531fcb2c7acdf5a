#include "harness/compare/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace attndiff {
namespace {

ComparisonRecord record(Verdict verdict, bool counted = true, const std::string& candidate = "cuda") {
  ComparisonRecord c;
  c.candidate = candidate;
  c.mode = "free";
  c.stage = "out";
  c.result.verdict = verdict;
  c.result.counted = counted;
  c.result.count = counted ? 64 : 0;
  return c;
}

FixtureReport fixture(std::vector<ComparisonRecord> comparisons, std::optional<std::string> error = std::nullopt) {
  FixtureReport f;
  f.path = "a.h5";
  f.error = std::move(error);
  f.comparisons = std::move(comparisons);
  f.verdict = overall_verdict(f);
  return f;
}

RunReport run(std::vector<FixtureReport> fixtures, const std::vector<ErrorKind>& problems = {}) {
  RunReport r;
  r.candidates = {"cuda"};
  r.fixtures = std::move(fixtures);
  for (const ErrorKind kind : problems) {
    r.problems.push_back({kind, "problem"});
  }
  return r;
}

TEST(ExitReason, PassesOnlyWhatWasComparedAndAgreed) {
  EXPECT_EQ(exit_reason(run({fixture({record(Verdict::pass)})})), ExitReason::passed);
  EXPECT_EQ(exit_reason(run({fixture({record(Verdict::tie)})})), ExitReason::passed);
  EXPECT_EQ(exit_reason(run({fixture({record(Verdict::explained)})})), ExitReason::passed);
  EXPECT_EQ(exit_reason(run({fixture({record(Verdict::pass), record(Verdict::unobserved, false)})})),
            ExitReason::passed);
}

TEST(ExitReason, NothingComparedIsNeverAPass) {
  EXPECT_EQ(exit_reason(run({})), ExitReason::nothing_verified);
  EXPECT_EQ(exit_reason(run({fixture({})})), ExitReason::nothing_verified);
  EXPECT_EQ(exit_reason(run({fixture({record(Verdict::unobserved, false)})})), ExitReason::nothing_verified);
  EXPECT_EQ(exit_reason(run({fixture({record(Verdict::pass, false)})})), ExitReason::nothing_verified)
      << "two empty tensors are no comparison";
  EXPECT_EQ(exit_reason(run({fixture({record(Verdict::pass)}), fixture({})})), ExitReason::nothing_verified)
      << "one fixture was asked for and not compared";
}

TEST(ExitReason, EveryCandidateMustBeCompared) {
  RunReport r = run({fixture({record(Verdict::pass)})});
  r.candidates = {"cuda", "recorded"};
  EXPECT_EQ(exit_reason(r), ExitReason::nothing_verified);
  r.fixtures[0].comparisons.push_back(record(Verdict::pass, true, "recorded"));
  EXPECT_EQ(exit_reason(r), ExitReason::passed);
}

TEST(ExitReason, AFailureWinsOverEverything) {
  const std::vector<ErrorKind> everything{ErrorKind::internal, ErrorKind::unavailable, ErrorKind::usage,
                                          ErrorKind::input, ErrorKind::output};
  for (const VerdictInfo& v : verdicts()) {
    const RunReport r = run({fixture({record(v.verdict)}, "torn"), fixture({})}, everything);
    EXPECT_EQ(exit_reason(r) == ExitReason::failed, v.effect == VerdictEffect::fails_run) << v.name;
  }
}

TEST(ExitReason, WithoutAFailureInternalThenUnavailableThenInputThenNothing) {
  const FixtureReport good = fixture({record(Verdict::pass)});
  const FixtureReport torn = fixture({}, "cannot be read");
  const FixtureReport idle = fixture({});
  EXPECT_EQ(exit_reason(run({good, torn, idle}, {ErrorKind::unavailable, ErrorKind::internal})), ExitReason::internal);
  EXPECT_EQ(exit_reason(run({good, torn, idle}, {ErrorKind::unavailable, ErrorKind::output})), ExitReason::internal);
  EXPECT_EQ(exit_reason(run({good, torn, idle}, {ErrorKind::unavailable})), ExitReason::unavailable);
  EXPECT_EQ(exit_reason(run({good, torn, idle})), ExitReason::usage_or_input);
  EXPECT_EQ(exit_reason(run({good, idle}, {ErrorKind::usage})), ExitReason::usage_or_input);
  EXPECT_EQ(exit_reason(run({good, idle}, {ErrorKind::refused})), ExitReason::usage_or_input);
  EXPECT_EQ(exit_reason(run({good, idle})), ExitReason::nothing_verified);
  EXPECT_EQ(exit_reason(run({good})), ExitReason::passed);
}

TEST(ExitReason, AFixtureThatFailedBeforeItsErrorStillFails) {
  EXPECT_EQ(exit_reason(run({fixture({record(Verdict::fail)}, "refused in step 3")})), ExitReason::failed);
}

TEST(ExitReason, ACrashWithoutAnyComparisonFails) {
  FixtureReport f = fixture({});
  f.verdict = Verdict::crashed;
  EXPECT_EQ(exit_reason(run({f})), ExitReason::failed);
}

TEST(OverallVerdict, TheWorstFailureThenTheErrorThenTheRest) {
  using V = Verdict;
  EXPECT_EQ(fixture({record(V::pass), record(V::fail), record(V::missing)}).verdict, V::fail);
  EXPECT_EQ(fixture({record(V::crashed), record(V::fail)}).verdict, V::crashed);
  EXPECT_EQ(fixture({record(V::degenerate), record(V::uncertified)}).verdict, V::uncertified);
  EXPECT_EQ(fixture({record(V::fail)}, "error").verdict, V::fail);
  EXPECT_EQ(fixture({record(V::pass)}, "error").verdict, V::error);
  EXPECT_EQ(fixture({record(V::pass), record(V::tie)}).verdict, V::tie);
  EXPECT_EQ(fixture({record(V::pass), record(V::unobserved, false)}).verdict, V::pass);
  EXPECT_EQ(fixture({record(V::pass, false)}).verdict, V::unobserved);
}

TEST(Totals, CountVerdictsElementsAndReasons) {
  const RunReport r = run({fixture({record(Verdict::pass), record(Verdict::pass), record(Verdict::fail)}),
                           fixture({record(Verdict::pass), record(Verdict::missing, false)}), fixture({}, "torn")},
                          {ErrorKind::unavailable});
  const Totals t = totals_of(r);
  const auto verdict = [&](Verdict v) { return t.by_verdict.at(static_cast<std::size_t>(v)); };
  const auto reason = [&](ExitReason e) { return t.by_exit_reason.at(static_cast<std::size_t>(e)); };
  EXPECT_EQ(verdict(Verdict::pass), 3);
  EXPECT_EQ(verdict(Verdict::fail), 1);
  EXPECT_EQ(verdict(Verdict::missing), 1);
  EXPECT_EQ(verdict(Verdict::error), 1);
  EXPECT_EQ(t.comparisons, 4);
  EXPECT_EQ(t.elements, 4 * 64);
  EXPECT_EQ(reason(ExitReason::failed), 2);
  EXPECT_EQ(reason(ExitReason::usage_or_input), 1);
  EXPECT_EQ(reason(ExitReason::unavailable), 1);
  EXPECT_EQ(reason(ExitReason::passed), 0);
  EXPECT_EQ(first_failure(r), &r.fixtures[0].comparisons[2]);
}

}  // namespace
}  // namespace attndiff
