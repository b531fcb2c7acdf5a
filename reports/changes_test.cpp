#include "reports/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/changes_text.h"
#include "reports/sample_report.h"

namespace attndiff {
namespace {

using test::failing;
using test::fixture;
using test::passing;
using test::run_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Changes between(const RunReport& before, const RunReport& after) { return changes_between(before, after, {}); }

ComparisonRecord using_of_bound(double ratio) {
  ComparisonRecord c = passing("q", 0);
  c.result.bound_ratio = ratio;
  return c;
}

RunReport timed(std::vector<double> seconds) {
  RunReport r = run_of({fixture("a.h5", {passing("q", 0)})});
  r.fixtures[0].timings = {{.backend = "cuda", .mode = "free", .seconds = std::move(seconds)}};
  return r;
}

TEST(Changes, TheSameRunTwiceIsNoChange) {
  const RunReport r = run_of({fixture("a.h5", {passing("q", 0), failing("out", 1)})});
  const Changes c = between(r, r);
  EXPECT_EQ(c.in_common, 2U);
  EXPECT_FALSE(c.regressed());
  EXPECT_THAT(c.newly_failing, IsEmpty());
  EXPECT_THAT(c.mended, IsEmpty());
}

TEST(Changes, NewlyFailingAndMended) {
  const RunReport before = run_of({fixture("a.h5", {passing("q", 0), failing("out", 1)})});
  const RunReport after = run_of({fixture("a.h5", {failing("q", 0), passing("out", 1), failing("new", 2)})});
  const Changes c = between(before, after);
  ASSERT_THAT(c.newly_failing, SizeIs(2));
  EXPECT_EQ(c.newly_failing[0].after->stage, "q");
  EXPECT_EQ(c.newly_failing[1].before, nullptr) << "what fails and was not there before is new as well";
  ASSERT_THAT(c.mended, SizeIs(1));
  EXPECT_EQ(c.mended[0].after->stage, "out");
  EXPECT_TRUE(c.regressed());
  EXPECT_FALSE(between(before, run_of({fixture("a.h5", {passing("q", 0), passing("out", 1)})})).regressed());
}

TEST(Changes, AnExcusedFailureIsNone) {
  ComparisonRecord known = failing("q", 0);
  known.known_failure = "somebody";
  const Changes c = between(run_of({fixture("a.h5", {passing("q", 0)})}), run_of({fixture("a.h5", {known})}));
  EXPECT_FALSE(c.regressed());
}

TEST(Changes, WhatIsNoLongerComparedIsARegression) {
  const RunReport before = run_of({fixture("a.h5", {passing("q", 0), passing("out", 0)}), fixture("b.h5", {})});
  ComparisonRecord hidden = passing("out", 0);
  hidden.result = {};
  hidden.result.verdict = Verdict::unobserved;
  const Changes gone = between(before, run_of({fixture("a.h5", {passing("q", 0)}), fixture("b.h5", {})}));
  ASSERT_THAT(gone.vanished, SizeIs(1));
  EXPECT_TRUE(gone.regressed());
  EXPECT_THAT(between(before, run_of({fixture("a.h5", {passing("q", 0), hidden}), fixture("b.h5", {})})).vanished,
              SizeIs(1));
  const Changes fixture_gone = between(before, run_of({fixture("a.h5", {passing("q", 0), passing("out", 0)})}));
  ASSERT_THAT(fixture_gone.fixtures, SizeIs(1));
  EXPECT_EQ(fixture_gone.fixtures[0].fixture, "b.h5");
  EXPECT_TRUE(fixture_gone.regressed());
}

TEST(Changes, AFixtureInErrorIsARegressionOnce) {
  const RunReport good = run_of({fixture("a.h5", {passing("q", 0)})});
  const RunReport bad = run_of({fixture("a.h5", {passing("q", 0)}, "torn")});
  EXPECT_THAT(between(good, bad).fixtures, SizeIs(1));
  EXPECT_THAT(between(bad, bad).fixtures, IsEmpty());
  EXPECT_THAT(between(bad, good).fixtures, IsEmpty());
}

TEST(Changes, HeadroomShrinksByMoreThanTheFactor) {
  const auto shrunk = [](double before, double after, double factor) {
    const RunReport a = run_of({fixture("a.h5", {using_of_bound(before)})});
    const RunReport b = run_of({fixture("a.h5", {using_of_bound(after)})});
    return changes_between(a, b, {.headroom_factor = factor}).shrunk.size();
  };
  EXPECT_EQ(shrunk(0.2, 0.39, 2), 0U);
  EXPECT_EQ(shrunk(0.2, 0.41, 2), 1U);
  EXPECT_EQ(shrunk(0.2, 0.41, 3), 0U);
  EXPECT_EQ(shrunk(0.0, 0.09, 2), 0U) << "below twice the floor nothing has been used";
  EXPECT_EQ(shrunk(0.0, 0.11, 2), 1U);
  EXPECT_EQ(shrunk(0.8, 0.1, 2), 0U);
}

TEST(Changes, TimingsMoveWhenTheirRangesPart) {
  EXPECT_THAT(between(timed({1.0, 1.1}), timed({1.05, 1.2})).slower, IsEmpty());
  const Changes slow = between(timed({1.0, 1.1}), timed({1.3, 1.2}));
  ASSERT_THAT(slow.slower, SizeIs(1));
  EXPECT_FALSE(slow.regressed()) << "a time is reported and decides nothing";
  EXPECT_NEAR(slow.slower[0].ratio(), 1.3 / 1.1, 1e-9);
  EXPECT_THAT(between(timed({1.0, 1.1}), timed({0.8, 0.9})).faster, SizeIs(1));
  const Changes once = between(timed({1.0}), timed({9.0}));
  EXPECT_THAT(once.slower, IsEmpty()) << "one repetition has no spread";
  EXPECT_EQ(once.timings_without_spread, 1U);
}

TEST(Changes, NothingInCommon) {
  const RunReport before = run_of({fixture("a.h5", {passing("q", 0)})});
  const RunReport after = run_of({fixture("b.h5", {passing("q", 0)})});
  const Changes c = between(before, after);
  EXPECT_EQ(c.in_common, 0U);
  EXPECT_THAT(changes_table(c, false), HasSubstr("NOTHING IN COMMON"));
}

TEST(ChangesText, TheTableEndsWithTheNewFailuresCommand) {
  const RunReport before = run_of({fixture("a.h5", {passing("q", 0), passing("out", 1)})});
  const RunReport after = run_of({fixture("a.h5", {passing("q", 0), failing("out", 1)})});
  const Changes c = between(before, after);
  const std::string text = changes_table(c, false);
  EXPECT_THAT(text, HasSubstr("Newly failing\nfixture  step"));
  EXPECT_THAT(text, HasSubstr("a.h5     1 (position 21)"));
  EXPECT_THAT(text, HasSubstr("REGRESSED\n"));
  EXPECT_THAT(text, HasSubstr("No timing is in both reports."));
  EXPECT_TRUE(text.ends_with("attndiff replay --stages out a.h5\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(changes_table(c, true), HasSubstr("\x1b[31mREGRESSED"));
}

TEST(ChangesText, HtmlEscapes) {
  const RunReport before = run_of({fixture("</style><b>.h5", {passing("q", 0)})});
  const RunReport after = run_of({fixture("</style><b>.h5", {failing("q", 0)})});
  const std::string text = changes_html(between(before, after));
  EXPECT_THAT(text, HasSubstr("&lt;/style&gt;&lt;b&gt;.h5"));
  EXPECT_THAT(text, Not(HasSubstr("<b>")));
}

}  // namespace
}  // namespace attndiff
