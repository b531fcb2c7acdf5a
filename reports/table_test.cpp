#include "reports/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "reference/contract/error.h"
#include "reports/sample_report.h"
#include "reports/text_table.h"

namespace attndiff {
namespace {

using test::failing;
using test::fixture;
using test::passing;
using test::run_of;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    out.push_back(line);
  }
  return out;
}

TEST(TextTable, IsAsWideAsItsContent) {
  TextTable t({{"name"}, {"n", true}, {"rest"}});
  t.add({"a", "1", "x"});
  t.add({"longer", "100", ""});
  t.note("why");
  EXPECT_EQ(t.text(),
            "name      n  rest\n"
            "a         1  x\n"
            "longer  100  \n"
            "    why\n");
}

TEST(TextTable, CountsCodePoints) {
  TextTable t({{"name"}, {"n"}});
  t.add({"\xC3\xA4\xC3\xA4", "1"});
  EXPECT_EQ(t.text(), "name  n\n\xC3\xA4\xC3\xA4    1\n");
}

TEST(TextTable, RefusesARowOfTheWrongLength) {
  TextTable t({{"name"}});
  EXPECT_THROW(t.add({"a", "b"}), Error);
  EXPECT_EQ(t.text(), "");
}

TEST(Table, SummarisesWhatPassed) {
  const std::string text =
      table_text(run_of({fixture("a.h5", {passing("q", 0), passing("q", 1), passing("q", 2), passing("out", 1)})}));
  EXPECT_EQ(text,
            "reference cpu, candidate cuda, mode free\n"
            "\n"
            "fixture  candidate  mode  stage  verdict  compared  elements  differ  worst |d| / bound\n"
            "a.h5     cuda       free  q      pass            3       384       0              0.500\n"
            "a.h5     cuda       free  out    pass            1       128       0              0.250\n"
            "\n"
            "1 fixtures, 4 comparisons of 512 elements: 4 pass\n"
            "passed\n");
}

/// A window-only layer has no latent; the layer after it has one in the middle.
TEST(Table, StagesStandInTheirOrder) {
  const std::string text = table_text(run_of({fixture(
      "a.h5", {passing("q", 0), passing("out", 0), passing("q", 1), passing("latent", 1), passing("out", 1)})}));
  EXPECT_LT(text.find(" q "), text.find(" latent "));
  EXPECT_LT(text.find(" latent "), text.find(" out "));
}

TEST(Table, ManyFailuresAreCountedByStage) {
  const FixtureReport two = fixture("a.h5", {failing("q", 0), failing("out", 0), failing("q", 1), failing("out", 1)});
  EXPECT_THAT(table_text(run_of({two, fixture("b.h5", {passing("q", 0), failing("out", 0)})})),
              HasSubstr("\n\nFailing stages:\n  cuda free: q (2), out (3)\n\n"));
  EXPECT_THAT(table_text(run_of({fixture("a.h5", {failing("q", 0)})})), Not(HasSubstr("Failing stages")));
}

TEST(Table, AFailureHasItsOwnLineAndTheReproIsLast) {
  const std::string text = table_text(run_of(
      {fixture("a.h5", {passing("q", 0), passing("out", 0), failing("out", 1)}), fixture("b.h5", {failing("q", 0)})}));
  EXPECT_THAT(text,
              HasSubstr("\na.h5     1 (position 21)      2 (ratio 2 kv+index source)  cuda       free  out    fail   "
                        "    1 of 128  nan at [0, 3]: reference 0.5, candidate nan (0x7fc0)\n"
                        "    1 of 128 elements are NaN or infinite on one side and not the same on the other\n"));
  EXPECT_THAT(text, HasSubstr("b.h5     0 (positions 0..20)"));
  EXPECT_THAT(text, HasSubstr("2 fixtures, 4 comparisons of 512 elements: 2 pass, 2 fail\nFAILED\n"));
  EXPECT_EQ(lines(text).back(), "attndiff replay --stages out a.h5");
}

TEST(Table, VerboseListsEveryComparison) {
  const RunReport report = run_of({fixture("a.h5", {passing("q", 0), passing("q", 1), passing("q", 2)})});
  const std::string text = table_text(report, {.verbose = true});
  EXPECT_THAT(text, HasSubstr("0 (positions 0..20)"));
  EXPECT_THAT(text, HasSubstr("1 (position 21)"));
  EXPECT_THAT(text, HasSubstr("2 (position 22)"));
  EXPECT_THAT(table_text(report), Not(HasSubstr("(position 21)")));
}

TEST(Table, TiesAndUnobservedStagesAreListed) {
  ComparisonRecord tie = passing("selection", 1);
  tie.result.verdict = Verdict::tie;
  tie.result.reason = "2 positions of equal score";
  ComparisonRecord hidden = passing("og", 1);
  hidden.result = {};
  hidden.result.verdict = Verdict::unobserved;
  const std::string text = table_text(run_of({fixture("a.h5", {passing("q", 1), tie, hidden})}));
  EXPECT_THAT(text, HasSubstr("og         unobserved         0         0       0                  -\n"));
  EXPECT_THAT(text, HasSubstr("selection  tie                1"));
  EXPECT_THAT(text, HasSubstr("1 pass, 1 tie, 1 unobserved\npassed\n"));
}

TEST(Table, AMissingTensorHasNoElement) {
  ComparisonRecord c = passing("out", 1);
  c.result = {};
  c.result.verdict = Verdict::missing;
  c.result.reason = "the candidate has no such tensor";
  const std::string text = table_text(run_of({fixture("a.h5", {c})}));
  EXPECT_THAT(text, HasSubstr("missing      0 of 0  -\n    the candidate has no such tensor\n"));
}

TEST(Table, ErrorsAndNothingComparedAreSaid) {
  RunReport report = run_of({fixture("a.h5", {passing("q", 0)}), fixture("b.h5", {}, "b.h5: /config: missing"),
                             fixture("c.h5", {}, "torn"), fixture("d.h5", {})});
  report.problems.push_back({ErrorKind::unavailable, "cuda: no usable GPU"});
  const std::string text = table_text(report);
  EXPECT_THAT(text, HasSubstr("error: b.h5: /config: missing\nerror: c.h5: torn\nnothing compared: d.h5\n"
                              "unavailable: cuda: no usable GPU\n"));
  EXPECT_EQ(lines(text).back(), "NOT PASSED: a backend is not available here");
}

TEST(Table, AnEmptyRunSaysSo) {
  EXPECT_THAT(table_text(run_of({})), HasSubstr("0 fixtures, 0 comparisons of 0 elements: nothing compared\n"
                                                "NOT PASSED: not everything asked for was compared\n"));
}

TEST(Table, HasNoColourUnlessAskedFor) {
  const RunReport report = run_of({fixture("a.h5", {passing("q", 0), failing("q", 1)})});
  EXPECT_THAT(table_text(report), Not(HasSubstr("\x1b")));
  const std::string text = table_text(report, {.colour = true});
  EXPECT_THAT(text, HasSubstr("\x1b[31mfail\x1b[0m "));
  EXPECT_THAT(text, HasSubstr("\x1b[32mpass\x1b[0m "));
  EXPECT_THAT(text, HasSubstr("\x1b[31mFAILED\x1b[0m\n"));
  EXPECT_EQ(lines(text).back(), "attndiff replay --stages q a.h5") << "the command to copy has no colour";
}

TEST(Table, ColourLeavesColumnsWhereTheyAre) {
  const RunReport report = run_of({fixture("a.h5", {passing("q", 0), failing("q", 1)})});
  std::string text = table_text(report, {.colour = true});
  for (const char* sequence : {kRed, kGreen, kYellow, "\x1b[0m"}) {
    for (std::size_t at = 0; (at = text.find(sequence)) != std::string::npos;) {
      text.erase(at, std::string(sequence).size());
    }
  }
  EXPECT_EQ(text, table_text(report));
}

TEST(Table, QuietSaysOnlyWhatIsWrongAndTheTotals) {
  const std::string text = table_text(run_of({fixture("a.h5", {passing("q", 0), failing("out", 1)})}), {.quiet = true});
  EXPECT_THAT(text, Not(HasSubstr("pass ")));
  EXPECT_THAT(text, ::testing::StartsWith("fixture"));
  EXPECT_THAT(text, HasSubstr("nan at [0, 3]"));
  EXPECT_THAT(text, HasSubstr("FAILED\n"));
  EXPECT_EQ(table_text(run_of({fixture("a.h5", {passing("q", 0)})}), {.quiet = true}),
            "1 fixtures, 1 comparisons of 128 elements: 1 pass\npassed\n");
}

}  // namespace
}  // namespace attndiff
