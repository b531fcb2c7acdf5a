#include "reference/indexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "reference/contract/bfloat16.h"

namespace attndiff::reference {
namespace {

using testing::ElementsAre;

std::vector<float> scores(const std::vector<float>& q, const std::vector<float>& keys, const std::vector<float>& w) {
  const std::size_t width = q.size() / w.size();
  std::vector<float> out(keys.size() / width, -99.0F);
  index_scores({.q = q, .keys = keys, .w = w, .out = out});
  return out;
}

TEST(IndexScores, RoundTheDotOfAHead) {
  // 1 + 2^-9 is nearer to 1 than to the next bf16, 1 + 2^-7.
  EXPECT_THAT(scores({1, 0x1p-9F}, {1, 1}, {1}), ElementsAre(1.0F));
  // 1 + 3 * 2^-9 is nearer to 1 + 2^-7.
  EXPECT_THAT(scores({1, 0x3p-9F}, {1, 1}, {1}), ElementsAre(1.0F + 0x1p-7F));
}

TEST(IndexScores, RoundTheWeightedDotOfAHead) {
  // (1 + 2^-7)^2 = 1 + 2^-6 + 2^-14, whose last term the rounding drops.
  EXPECT_THAT(scores({1.0F + 0x1p-7F}, {1}, {1.0F + 0x1p-7F}), ElementsAre(1.0F + 0x1p-6F));
}

TEST(IndexScores, InnerRoundingsChangeTheRoundedScore) {
  // Dot 1 + 5 * 2^-9, weight 1.25. The dot rounds to 1 + 2^-7, the product 1.259765625 to 1.2578125; without the inner
  // rounding it would be 1.26220703125, nearest bf16 1.265625.
  const std::vector<float> found = scores({1, 0x5p-9F}, {1, 1}, {1.25F});
  EXPECT_EQ(round_bf16(found[0]), 1.2578125F);
  ASSERT_EQ(round_bf16((1.0F + 0x5p-9F) * 1.25F), 1.265625F);
}

TEST(IndexScores, AreNotRoundedBetweenHeadsNorAtTheEnd) {
  // 1 + 2^-9 is no bf16: a sum kept in bf16 would give 1.
  EXPECT_THAT(scores({1, 1}, {1}, {1, 0x1p-9F}), ElementsAre(1.0F + 0x1p-9F));
}

TEST(IndexScores, RectifyEachHeadBeforeItsWeight) {
  // Dots 2 and -3: the negative one counts nothing, even under a negative weight.
  EXPECT_THAT(scores({2, -3}, {1}, {1, -1}), ElementsAre(2.0F));
  EXPECT_THAT(scores({2, -3}, {1}, {-1, 1}), ElementsAre(-2.0F));
}

TEST(IndexScores, OfManyKeysEqualExactSums) {
  // Small integers: every dot is exact, so the expectation needs no tolerance.
  std::mt19937 engine(2);
  constexpr std::size_t kHeads = 3;
  constexpr std::size_t kWidth = 32;
  constexpr std::size_t kKeys = 600;  // more than two of the blocks that products are cut into
  const auto integer = [&] { return static_cast<float>(static_cast<int>(engine() % 13) - 6); };
  std::vector<float> q(kHeads * kWidth);
  std::vector<float> keys(kKeys * kWidth);
  std::generate(q.begin(), q.end(), integer);
  std::generate(keys.begin(), keys.end(), integer);
  const std::vector<float> w{0.375F, -1.25F, 0.0703125F};
  const auto found = scores(q, keys, w);
  for (std::size_t p = 0; p < kKeys; ++p) {
    float expected = 0;
    for (std::size_t h = 0; h < kHeads; ++h) {
      long dot = 0;
      for (std::size_t d = 0; d < kWidth; ++d) {
        dot += std::lround(q[h * kWidth + d]) * std::lround(keys[p * kWidth + d]);
      }
      expected += round_bf16(round_bf16(static_cast<float>(std::max(dot, 0L))) * w[h]);
    }
    ASSERT_EQ(found[p], expected) << p;
  }
}

TEST(IndexScores, NanOfOneKeyStaysWithIt) {
  const auto found = scores({1, 1}, {1, 2, std::nanf(""), 0, 3, 4}, {1});
  EXPECT_EQ(found[0], 3.0F);
  EXPECT_TRUE(std::isnan(found[1]));
  EXPECT_EQ(found[2], 7.0F);
}

TEST(IndexWeightScale, IsTheProductOfBothRoots) {
  ModelConfig c;
  c.index_head_dim = 64;
  c.index_heads = 16;
  EXPECT_EQ(index_weight_scale(c), 1.0F / 32.0F);
  c.index_heads = 3;  // 1 / (8 sqrt 3)
  EXPECT_EQ(index_weight_scale(c), static_cast<float>(0.125 / std::sqrt(3.0)));
}

TEST(ScaledIndexWeight, RoundsTheProjectionBeforeTheScale) {
  // 1 + 2^-9 rounds to 1 first; the product itself is not rounded to bf16 here.
  EXPECT_EQ(scaled_index_weight(1.0F + 0x1p-9F, 0.1F), 0.1F);
}

}  // namespace
}  // namespace attndiff::reference
