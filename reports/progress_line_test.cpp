#include "reports/progress_line.h"

#include <gtest/gtest.h>

namespace attndiff {
namespace {

TEST(ProgressLine, ShowsPartFixturesAndTimeLeft) {
  EXPECT_EQ(progress_line({.fixtures = 4, .finished = 1, .calls = 10, .calls_begun = 5, .seconds = 30}),
            "[#########---------------]  37 %  fixture 2 of 4, about 50 s left");
  EXPECT_EQ(progress_line({.fixtures = 4, .finished = 4, .calls = 0, .calls_begun = 0, .seconds = 30}),
            "[########################] 100 %  fixture 4 of 4, about 0 s left");
}

TEST(ProgressLine, SaysNothingAboutTheTimeBeforeItKnows) {
  EXPECT_EQ(progress_line({.fixtures = 100, .finished = 0, .calls = 10, .calls_begun = 1, .seconds = 3}),
            "[------------------------]   0 %  fixture 1 of 100");
  EXPECT_EQ(ProgressState{}.fraction(), 0);
}

TEST(ProgressLine, Durations) {
  EXPECT_EQ(duration_text(-1), "0 s");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(200), "3 min 20 s");
  EXPECT_EQ(duration_text(7500), "2 h 5 min");
}

}  // namespace
}  // namespace attndiff
