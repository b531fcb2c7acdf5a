#include "harness/compare/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "harness/compare/test_tensors.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

using test::Values;

std::vector<double> widened(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(Grid, Fp8StepIsTheDistanceToTheLowerNeighbour) {
  EXPECT_EQ(grid_step(Rounding::fp8, 1, 448), 32);         // 416
  EXPECT_EQ(grid_step(Rounding::fp8, 1, 256), 16);         // 240, in the finer binade
  EXPECT_EQ(grid_step(Rounding::fp8, 1, 1.125), 0.125);    // 1
  EXPECT_EQ(grid_step(Rounding::fp8, 1, 0x1p-6), 0x1p-9);  // the largest subnormal below
  EXPECT_EQ(grid_step(Rounding::fp8, 1, 0), 0x1p-9);       // to the smallest subnormal
  EXPECT_EQ(grid_step(Rounding::fp8, 0.5, 224), 16);
}

TEST(Grid, Fp4StepIsTheDistanceToTheLowerNeighbour) {
  for (const Rounding grid : {Rounding::fp4_e8m0, Rounding::fp4_e4m3}) {
    EXPECT_EQ(grid_step(grid, 2, 12), 4);  // 6 to 4
    EXPECT_EQ(grid_step(grid, 2, 8), 2);   // 4 to 3
    EXPECT_EQ(grid_step(grid, 2, 4), 1);   // 2 to 1.5
    EXPECT_EQ(grid_step(grid, 2, 0), 1);
  }
}

TEST(Grid, FindsTheScaleTheQuantiserUsed) {
  for (const Rounding grid : {Rounding::fp8, Rounding::fp4_e8m0, Rounding::fp4_e4m3}) {
    Values values(7);
    for (int block = 0; block < 2000; ++block) {
      std::vector<float> v(block_size(grid));
      const float size = std::ldexp(1.0F, static_cast<int>(values.below(20)) - 12);
      std::generate(v.begin(), v.end(), [&] { return round_bf16(values.next() * size); });
      const float used = grid == Rounding::fp8        ? reference::fp8_scale(v)
                         : grid == Rounding::fp4_e8m0 ? reference::fp4_e8m0_scale(v)
                                                      : reference::fp4_e4m3_scale(v);
      test::quantise(grid, v);
      const BlockScale found = block_scale(grid, widened(v));
      ASSERT_TRUE(found.on_grid) << name_of(grid) << " block " << block;
      // Where the values fit two grids, the coarser one is as good an answer.
      ASSERT_TRUE(found.scale == used || (grid != Rounding::fp4_e4m3 && found.scale == 2 * used))
          << name_of(grid) << " block " << block << ": " << found.scale << " for " << used;
    }
  }
}

TEST(Grid, SeesTheFinerScaleBehindAMaximumAtTheBoundary) {
  // 6 is 6 * 1 and 3 * 2; 0.5 lies on the grid of 1 only.
  EXPECT_EQ(block_scale(Rounding::fp4_e8m0, std::vector<double>{6, 0.5}).scale, 1);
  EXPECT_EQ(block_scale(Rounding::fp4_e8m0, std::vector<double>{6, 1}).scale, 2);
}

TEST(Grid, AZeroBlockHasTheFloorScale) {
  const std::vector<double> zeros(32, 0.0);
  EXPECT_EQ(block_scale(Rounding::fp8, zeros).scale, 0x1p-22);
  EXPECT_EQ(block_scale(Rounding::fp4_e8m0, zeros).scale, 0x1p-126);
  EXPECT_EQ(block_scale(Rounding::fp4_e4m3, zeros).scale, 0x1p-9);
  EXPECT_TRUE(block_scale(Rounding::fp4_e4m3, zeros).on_grid);
}

TEST(Grid, ValuesThatWereNeverQuantisedFitNoScale) {
  for (const Rounding grid : {Rounding::fp8, Rounding::fp4_e8m0, Rounding::fp4_e4m3}) {
    const auto values = test::rounded_values(32, 3);
    EXPECT_FALSE(block_scale(grid, widened(values)).on_grid) << name_of(grid);
  }
}

TEST(Grid, ANonFiniteValueFitsNoScale) {
  EXPECT_FALSE(block_scale(Rounding::fp8, std::vector<double>{1, std::nan("")}).on_grid);
  EXPECT_FALSE(block_scale(Rounding::fp4_e4m3, std::vector<double>{INFINITY, 0}).on_grid);
}

TEST(Grid, TellsTheRowsOfAMixedTensorApart) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    auto fp8 = test::rounded_values(64, seed);
    auto fp4 = fp8;
    test::quantise(Rounding::fp8, fp8);
    test::quantise(Rounding::fp4_e4m3, fp4);
    EXPECT_EQ(row_grid(Rounding::mixed, widened(fp8)), Rounding::fp8);
    EXPECT_EQ(row_grid(Rounding::mixed, widened(fp4)), Rounding::fp4_e4m3);
  }
  EXPECT_EQ(row_grid(Rounding::fp4_e8m0, widened(test::rounded_values(32, 1))), Rounding::fp4_e8m0);
}

TEST(Grid, OtherRoundingsHaveNone) {
  EXPECT_FALSE(is_grid(Rounding::bf16));
  EXPECT_FALSE(is_grid(Rounding::mixed));
  EXPECT_THROW(static_cast<void>(block_scale(Rounding::bf16, std::vector<double>{1})), Error);
}

}  // namespace
}  // namespace attndiff
