#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reports/annotations.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/sample_report.h"

namespace attndiff {
namespace {

using test::failing;
using test::fixture;
using test::passing;
using test::run_of;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

ComparisonRecord excused(const std::string& stage) {
  ComparisonRecord c = failing(stage, 1);
  c.known_failure = "known failure, somebody until 2027-01-31: later";
  return c;
}

TEST(Junit, ACaseIsAFixtureALayerAndAStage) {
  const std::string text =
      junit_text(run_of({fixture("a.h5", {passing("q", 0), passing("q", 1), passing("out", 0), failing("out", 1)})}));
  EXPECT_THAT(text, HasSubstr("<testsuite name=\"a.h5\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\">"));
  EXPECT_EQ(occurrences(text, "<testcase "), 2U);
  EXPECT_THAT(text, HasSubstr("<testcase classname=\"a.h5.cuda.free.layer 2\" name=\"q\">"));
  EXPECT_THAT(text, HasSubstr("<property name=\"steps\" value=\"0,1\"/>"));
  EXPECT_THAT(text, HasSubstr("<property name=\"bound_ratio\" value=\"0.25\"/>"));
  EXPECT_THAT(text, HasSubstr("<failure type=\"fail\" message=\"step 1 (position 21): fail: 1 of 128 elements"));
  EXPECT_THAT(text, HasSubstr("attndiff replay --stages out a.h5"));
}

TEST(Junit, WhatWasNotSeenOrIsExcusedIsSkippedNotPassed) {
  ComparisonRecord hidden = passing("og", 1);
  hidden.result = {};
  hidden.result.verdict = Verdict::unobserved;
  hidden.result.reason = "inside a fused segment of the candidate";
  const std::string text = junit_text(run_of({fixture("a.h5", {hidden, excused("out")})}));
  EXPECT_THAT(text, HasSubstr("skipped=\"2\""));
  EXPECT_THAT(text, HasSubstr("<skipped message=\"inside a fused segment of the candidate\"/>"));
  EXPECT_THAT(text, HasSubstr("<skipped message=\"known failure, somebody until 2027-01-31: later\"/>"));
}

TEST(Junit, ErrorsOutsideComparisonsAreErrors) {
  RunReport r = run_of({fixture("b.h5", {}, "torn"), fixture("c.h5", {})});
  r.problems.push_back({ErrorKind::unavailable, "no GPU"});
  r.unanswered = {"stage lse"};
  const std::string text = junit_text(r);
  EXPECT_EQ(occurrences(text, "<error "), 4U);
  EXPECT_THAT(text, HasSubstr("<error type=\"unobserved\" message=\"nothing was compared\"/>"));
  EXPECT_THAT(junit_text(run_of({})), HasSubstr("errors=\"1\"")) << "an empty run is no green suite";
}

TEST(Junit, EscapesWhatNamesHold) {
  const std::string text = junit_text(run_of({fixture("a\"<&\x01.h5", {passing("q", 0)})}));
  EXPECT_THAT(text, HasSubstr("<testsuite name=\"a&quot;&lt;&amp;\xEF\xBF\xBD.h5\""));
}

TEST(Markdown, SaysHowItEndedAndWhereTheFirstFailureIs) {
  const std::string text = markdown_text(
      run_of({fixture("a.h5", {passing("q", 0), failing("out", 1)}), fixture("b|`.h5", {failing("q", 0)})}));
  EXPECT_THAT(text, StartsWith("### attndiff: FAILED\n\n2 fixtures, 3 comparisons of 384 elements: 1 pass, 2 fail\n"));
  EXPECT_THAT(text, HasSubstr("**First failure:** stage `out` of layer 2 (ratio 2 kv+index source) in step 1 "
                              "(position 21) of `a.h5`, candidate `cuda`, mode `free`: fail\n"));
  EXPECT_THAT(text, HasSubstr("```\nattndiff replay --stages out a.h5\n```\n"));
  EXPECT_THAT(text, HasSubstr("| `` b\\|`.h5 `` | 0 (positions 0..20) |"));
  EXPECT_THAT(text, HasSubstr("| `cuda` | `free` | `q` | 1 | 0 | 0.000 |"));
}

TEST(Markdown, AVeryLongRunStillFitsAComment) {
  std::vector<ComparisonRecord> many;
  for (std::size_t i = 0; i < 5000; ++i) {
    many.push_back(failing("out" + std::to_string(i), i));
    many.push_back(passing("stage" + std::to_string(i), i));
  }
  const std::string text = markdown_text(run_of({fixture("a.h5", many)}));
  EXPECT_LT(text.size(), 65536U);
  EXPECT_THAT(text, HasSubstr("4980 more are not listed here."));
  EXPECT_THAT(text, HasSubstr("too long for a comment"));
}

TEST(Markdown, APassedRunHasNoFailure) {
  const std::string text = markdown_text(run_of({fixture("a.h5", {passing("q", 0)})}));
  EXPECT_THAT(text, StartsWith("### attndiff: passed\n"));
  EXPECT_THAT(text, Not(HasSubstr("failure")));
}

TEST(Annotations, OneALineAndEscaped) {
  ComparisonRecord c = failing("out", 1);
  c.location = "head 1: 100 %";
  const std::string text = annotations_text(run_of({fixture("a,b:c.h5", {passing("q", 0), c, excused("o")})}));
  EXPECT_EQ(occurrences(text, "\n"), 2U);
  EXPECT_THAT(text, StartsWith("::error title=attndiff%3A out of layer 2%2C step 1%3A fail::a,b:c.h5, candidate cuda"));
  EXPECT_THAT(text, HasSubstr("%0Ahead 1: 100 %25%0Aattndiff replay"));
  EXPECT_THAT(text, HasSubstr("\n::warning title="));
}

TEST(Annotations, AreBounded) {
  std::vector<ComparisonRecord> many(50, failing("out", 1));
  const std::string text = annotations_text(run_of({fixture("a.h5", many)}));
  EXPECT_EQ(occurrences(text, "::error "), kMostAnnotations + 1);
  EXPECT_THAT(text, HasSubstr("41 more comparisons fail"));
}

TEST(Annotations, ErrorsCountAndAPassedRunHasNone) {
  EXPECT_THAT(annotations_text(run_of({fixture("a.h5", {}, "torn")})),
              StartsWith("::error title=attndiff::error: a.h5"));
  EXPECT_EQ(annotations_text(run_of({fixture("a.h5", {passing("q", 0)})})), "");
}

}  // namespace
}  // namespace attndiff
