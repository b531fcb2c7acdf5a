#include "reference/compressor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace attndiff::reference {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> pooled(const std::vector<float>& k, const std::vector<float>& g, std::int64_t ratio) {
  std::vector<float> out(k.size() / static_cast<std::size_t>(ratio));
  pool_group(k, g, ratio, out);
  return out;
}

TEST(PoolGroup, AveragesUnderEqualScores) {
  // Two members of three dimensions.
  EXPECT_EQ(pooled({1, 2, 3, 5, 6, 7}, {9, -4, 0, 9, -4, 0}, 2), (std::vector<float>{3, 4, 5}));
}

TEST(PoolGroup, WeighsEachDimensionByItsOwnScores) {
  // ln 3: weights 3/4 and 1/4 in the first dimension, the other way round in the second.
  const auto log3 = static_cast<float>(std::log(3.0));
  const auto out = pooled({8, 8, 0, 0}, {log3, 0, 0, log3}, 2);
  EXPECT_NEAR(out[0], 6.0, 1e-5);
  EXPECT_NEAR(out[1], 2.0, 1e-5);
}

TEST(PoolGroup, AgreesWithDouble) {
  std::mt19937 engine(11);
  std::normal_distribution<float> normal;
  for (const std::int64_t ratio : {1, 2, 3, 4}) {
    const auto members = static_cast<std::size_t>(ratio);
    constexpr std::size_t kWidth = 9;
    std::vector<float> k(members * kWidth);
    std::vector<float> g(k.size());
    for (std::size_t i = 0; i < k.size(); ++i) {
      k[i] = normal(engine);
      g[i] = 5 * normal(engine);
    }
    const auto out = pooled(k, g, ratio);
    for (std::size_t d = 0; d < kWidth; ++d) {
      double den = 0;
      double sum = 0;
      for (std::size_t m = 0; m < members; ++m) {
        const double weight = std::exp(static_cast<double>(g[m * kWidth + d]));
        den += weight;
        sum += weight * static_cast<double>(k[m * kWidth + d]);
      }
      ASSERT_NEAR(out[d], sum / den, 2e-6) << "ratio " << ratio << ", dimension " << d;
    }
  }
}

TEST(PoolGroup, AMemberAtMinusInfinityWeighsNothing) {
  EXPECT_EQ(pooled({7, 100}, {-3, -kInf}, 2), (std::vector<float>{7}));
  EXPECT_EQ(pooled({100, 7}, {-kInf, -3}, 2), (std::vector<float>{7}));
}

TEST(PoolGroup, SubtractsTheMaximum) {
  // exp(1000) and exp(-1000) are beyond float32.
  EXPECT_EQ(pooled({2, 4}, {1000, 1000}, 2), (std::vector<float>{3}));
  EXPECT_EQ(pooled({2, 4}, {-1000, -1000}, 2), (std::vector<float>{3}));
}

TEST(PoolGroup, NanFlowsAndOnlyInItsDimension) {
  for (const std::size_t at : {0U, 2U}) {
    std::vector<float> g{0, 0, 0, 0};
    g[at] = std::nanf("");
    const auto out = pooled({1, 2, 3, 4}, g, 2);
    EXPECT_TRUE(std::isnan(out[0])) << at;
    EXPECT_EQ(out[1], 3.0F);
  }
  EXPECT_TRUE(std::isnan(pooled({1, 2}, {-kInf, -kInf}, 2)[0])) << "a softmax over nothing";
}

TEST(GroupPosition, IsThatOfTheGroupsFirstToken) {
  const LayerRole ratio_3{.ratio = 3};
  EXPECT_EQ(group_position(ratio_3, {.tokens = 7, .start_pos = 0}, 0), 0);
  EXPECT_EQ(group_position(ratio_3, {.tokens = 7, .start_pos = 0}, 1), 3);
  EXPECT_EQ(group_position(ratio_3, {.tokens = 1, .start_pos = 8}, 0), 6);  // tokens 6, 7, 8
  EXPECT_EQ(group_position({.ratio = 1}, {.tokens = 1, .start_pos = 8}, 0), 8);
}

TEST(VisiblePositions, AreTheGroupsWhollyInThePast) {
  for (const std::int64_t ratio : {1, 2, 3, 5}) {
    const LayerRole role{.ratio = ratio};
    for (std::int64_t position = 0; position < 20; ++position) {
      std::int64_t groups = 0;
      while ((groups + 1) * ratio - 1 <= position) {  // the group's last token
        ++groups;
      }
      EXPECT_EQ(visible_positions(role, {.tokens = 20, .start_pos = 0}, position), groups);
      if (position > 0) {
        EXPECT_EQ(visible_positions(role, {.tokens = 1, .start_pos = position}, 0), groups);
      }
    }
  }
}

}  // namespace
}  // namespace attndiff::reference
