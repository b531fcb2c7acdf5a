#include "reference/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace attndiff::reference {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kHidden = -kInf;

std::vector<int> mask(const std::vector<float>& scores, std::int64_t visible, std::int64_t block,
                      std::int64_t blocks_kept) {
  ModelConfig c;
  c.cand_block = block;
  c.cand_topk_blocks = blocks_kept;
  std::vector<std::uint8_t> out(scores.size(), 7);
  candidate_mask_row(scores, visible, c, out);
  return {out.begin(), out.end()};
}

std::vector<std::int32_t> picks(const std::vector<float>& scores, std::int64_t visible, std::size_t k) {
  std::vector<std::int32_t> out(k, 99);
  select_row(scores, visible, out);
  return out;
}

TEST(CandidateMask, KeepsTheBestBlocksWhole) {
  // Blocks of two: maxima 5, 1, 9, 2; the newest block (2) is pinned above all, and block 2 is next.
  EXPECT_THAT(mask({5, 0, 1, 1, 9, 0, 2, 2}, 8, 2, 2), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(mask({5, 0, 1, 1, 9, 0, 2, 2}, 8, 2, 3), ElementsAre(1, 1, 0, 0, 1, 1, 1, 1));
}

TEST(CandidateMask, ABlocksScoreIsItsMaximumAndNotItsSum) {
  EXPECT_THAT(mask({4, 4, -9, 7, 0, 0}, 6, 2, 2), ElementsAre(0, 0, 1, 1, 1, 1));
}

TEST(CandidateMask, PinsTheBlockOfTheNewestVisiblePosition) {
  // Position 3 is the newest visible one: its block is kept over better ones, and keeps its hidden positions.
  EXPECT_THAT(mask({9, 9, 8, -5, kHidden, kHidden}, 4, 2, 1), ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_THAT(mask({9, 9, -5, kHidden, kHidden, kHidden}, 3, 2, 1), ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(CandidateMask, NothingIsPinnedWhenNothingIsVisible) {
  EXPECT_THAT(mask({kHidden, kHidden, kHidden, kHidden}, 0, 2, 2), Each(0));
}

TEST(CandidateMask, BlocksAtMinusInfinityAreNotKept) {
  EXPECT_THAT(mask({1, 2, kHidden, kHidden, kHidden, kHidden}, 2, 2, 3), ElementsAre(1, 1, 0, 0, 0, 0));
}

TEST(CandidateMask, TheLastBlockIsPaddedWithMinusInfinity) {
  // Five positions, blocks of two. A pad of zero would lift the last block over the first.
  EXPECT_THAT(mask({-1, -1, -2, -2, -3}, 4, 2, 2), ElementsAre(1, 1, 1, 1, 0));
  EXPECT_THAT(mask({-1, -1, -2, -2, -3}, 5, 2, 1), ElementsAre(0, 0, 0, 0, 1));
}

TEST(CandidateMask, KeepsEverythingUnderMoreBlocksThanThereAre) {
  EXPECT_THAT(mask({3, 1, 2}, 3, 2, 100), Each(1));
  EXPECT_THAT(mask({3, 1, 2}, 3, 8, 1), Each(1));
}

TEST(CandidateMask, ABlockWithANanIsNotAboveMinusInfinity) {
  // The maximum of the block is NaN: it takes a place among the best, as in torch, but is not kept.
  EXPECT_THAT(mask({std::nanf(""), 1, 5, 5, 4, 4, 0, 0}, 8, 2, 2), ElementsAre(0, 0, 0, 0, 0, 0, 1, 1));
}

TEST(CandidateMask, AsksForNoMoreBlocksThanThereAre) {
  ModelConfig c;
  c.cand_block = 2;
  c.cand_topk_blocks = 5;
  std::vector<std::uint8_t> out(5);
  std::vector<float> seen;
  std::int64_t asked = -1;
  candidate_mask_row(std::vector<float>{1, 2, 3, 4, 5}, 3, c, out, [&](std::span<const float> best, std::int64_t k) {
    seen.assign(best.begin(), best.end());
    asked = k;
    return std::vector<std::int32_t>{0};
  });
  EXPECT_EQ(asked, 3);
  EXPECT_THAT(seen, ElementsAre(2, kInf, 5));
  EXPECT_THAT(out, ElementsAre(1, 1, 0, 0, 0));
}

TEST(SelectRow, PicksTheLargestAscending) { EXPECT_THAT(picks({1, 9, 3, 8, 2}, 5, 3), ElementsAre(1, 2, 3)); }

TEST(SelectRow, PicksAtOrBehindTheVisibleOnesAreAbsent) {
  EXPECT_THAT(picks({1, 2, kHidden, kHidden, kHidden}, 2, 4), ElementsAre(0, 1, -1, -1));
  EXPECT_THAT(picks({kHidden, kHidden}, 0, 2), ElementsAre(-1, -1));
  EXPECT_THAT(picks({4, 5, 6}, 2, 3), ElementsAre(0, 1, -1));
}

TEST(SelectRow, AMaskedButVisiblePickStays) {
  // Only one candidate: two more places are filled with positions the mask excluded.
  const auto found = picks({kHidden, 7, kHidden, kHidden}, 4, 3);
  EXPECT_EQ(std::count(found.begin(), found.end(), -1), 0);
  EXPECT_EQ(std::count(found.begin(), found.end(), 1), 1);
}

TEST(SelectRow, TakesEveryPositionWhenKIsTheLength) { EXPECT_THAT(picks({3, kHidden, 5}, 3, 3), ElementsAre(0, 1, 2)); }

TEST(SelectRow, CountsItsPicksByTheColumnsItFills) { EXPECT_THAT(picks({3, 4, 5}, 3, 0), ElementsAre()); }

TEST(OffsetPick, MovesPresentPicksBehindTheWindowRows) {
  EXPECT_EQ(offset_pick(0, 8), 8);
  EXPECT_EQ(offset_pick(5, 21), 26);
  EXPECT_EQ(offset_pick(-1, 8), -1);
}

}  // namespace
}  // namespace attndiff::reference
