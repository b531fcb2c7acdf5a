#include "reference/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace attndiff::reference {
namespace {

using testing::ElementsAre;

std::vector<std::int32_t> indices(const CallShape& call, std::int64_t window, std::int64_t t) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(call.prefill() ? std::min(call.tokens, window) : window), 99);
  window_indices(call, window, t, out);
  return out;
}

TEST(WindowIndices, OfAPrefillAreTheLastPositionsOfEachQuery) {
  for (const std::int64_t window : {1, 2, 5, 8}) {
    for (std::int64_t tokens = 1; tokens <= 12; ++tokens) {
      for (std::int64_t t = 0; t < tokens; ++t) {
        std::vector<std::int32_t> expected;
        for (std::int64_t p = 0; p < tokens; ++p) {
          if (p <= t && t - p < window) {
            expected.push_back(static_cast<std::int32_t>(p));
          }
        }
        expected.resize(static_cast<std::size_t>(std::min(tokens, window)), -1);
        ASSERT_EQ(indices({.tokens = tokens, .start_pos = 0}, window, t), expected)
            << "window " << window << ", tokens " << tokens << ", query " << t;
      }
    }
  }
}

TEST(WindowIndices, OfADecodeAreTheSlotsOfThePositionsOldestFirst) {
  for (const std::int64_t window : {1, 2, 5, 8}) {
    for (std::int64_t now = 1; now <= 30; ++now) {
      std::vector<std::int32_t> expected;
      for (std::int64_t p = now - window + 1; p <= now; ++p) {
        expected.push_back(p < 0 ? -1 : static_cast<std::int32_t>(p % window));
      }
      ASSERT_EQ(indices({.tokens = 1, .start_pos = now}, window, 0), expected)
          << "window " << window << ", position " << now;
    }
  }
}

TEST(WindowIndices, AbsentEntriesStandFirstAndTheRestNeedNotAscend) {
  EXPECT_THAT(indices({.tokens = 1, .start_pos = 2}, 5, 0), ElementsAre(-1, -1, 0, 1, 2));
  EXPECT_THAT(indices({.tokens = 1, .start_pos = 7}, 5, 0), ElementsAre(3, 4, 0, 1, 2));
}

TEST(WindowIndices, OfAWindowOfOneAreTheTokenItself) {
  EXPECT_THAT(indices({.tokens = 3, .start_pos = 0}, 1, 2), ElementsAre(2));
  EXPECT_THAT(indices({.tokens = 1, .start_pos = 9}, 1, 0), ElementsAre(0));
}

TEST(Ring, KeepsTheLastTokensOfAPrefillInTheirSlots) {
  for (const std::int64_t window : {1, 3, 8}) {
    for (std::int64_t tokens = 1; tokens <= 20; ++tokens) {
      // Writing every token in turn leaves in each slot the last one that fell into it.
      std::vector<std::int64_t> written(static_cast<std::size_t>(window), -1);
      std::vector<std::int64_t> kept = written;
      for (std::int64_t t = 0; t < tokens; ++t) {
        written[static_cast<std::size_t>(t % window)] = t;
      }
      for (std::int64_t t = first_kept_token(tokens, window); t < tokens; ++t) {
        auto& slot = kept[static_cast<std::size_t>(ring_slot(t, window))];
        EXPECT_EQ(slot, -1) << "two kept tokens in one slot";
        slot = t;
      }
      ASSERT_EQ(kept, written) << "window " << window << ", tokens " << tokens;
    }
  }
}

}  // namespace
}  // namespace attndiff::reference
