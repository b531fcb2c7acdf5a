#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/compare/compare.h"
#include "harness/compare/test_tensors.h"

namespace attndiff {
namespace {

using test::bf16_tensor;
using test::get;
using test::set;
using test::stage;
using ::testing::ElementsAre;

Comparison compared(std::string_view name, const Tensor& reference, const Tensor& candidate) {
  static const Tolerances tolerances = Tolerances::defaults(test::family());
  return compare(stage(name), &reference, &candidate, tolerances.at(stage(name)));
}

TEST(CompareQuantised, OneStepPassesTwoFail) {
  // fp4_e8m0, scale 1 in every block: 6 is the maximum, 0.5 shows the finer grid.
  std::vector<float> values(64, 1.0F);
  for (const std::size_t block : {0U, 32U}) {
    values[block] = 6;
    values[block + 1] = 0.5F;
  }
  const Tensor reference = bf16_tensor({1, 64}, values);
  Tensor candidate = reference;
  set(candidate, 40, 1.5F);
  EXPECT_EQ(compared("index_k", reference, candidate).verdict, Verdict::pass);
  set(candidate, 40, 2.0F);
  const Comparison c = compared("index_k", reference, candidate);
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_THAT(c.worst->index, ElementsAre(0, 40));
  set(candidate, 40, 1.0F);
  set(candidate, 0, 4.0F);
  EXPECT_EQ(compared("index_k", reference, candidate).verdict, Verdict::pass) << "6 and 4 are neighbours";
}

TEST(CompareQuantised, Fp8StepsFollowTheValue) {
  Tensor reference = test::stage_value(stage("kv"), 2, 32, 4);
  Tensor candidate = reference;
  set(reference, 7, 1.0F);
  set(candidate, 7, 1.125F);
  EXPECT_EQ(compared("kv", reference, candidate).verdict, Verdict::pass);
  set(candidate, 7, 1.25F);
  EXPECT_EQ(compared("kv", reference, candidate).verdict, Verdict::fail);
}

TEST(CompareQuantised, ARescaledBlockCountsOnce) {
  // The largest value crosses 6: the scale doubles, and many of the 32 move to the coarser grid.
  std::vector<float> below = test::rounded_values(32, 12);
  below[0] = 6.0F;
  std::vector<float> above = below;
  above[0] = test::one_unit_up(6.0F);
  reference::fp4_e8m0_round_trip(below);
  reference::fp4_e8m0_round_trip(above);
  const Comparison c = compared("index_q", bf16_tensor({1, 1, 32}, below), bf16_tensor({1, 1, 32}, above));
  EXPECT_GT(c.mismatches, 6);
  EXPECT_EQ(c.judged_differences, 1);
  EXPECT_EQ(c.verdict, Verdict::pass) << c.reason;
}

TEST(CompareQuantised, ARescaledE4m3BlockCountsOnce) {
  // amax / 6 crosses from the scale 1 to 1.125 at 1.0625.
  std::vector<float> below = test::rounded_values(16, 12);
  below[0] = 6.375F;
  std::vector<float> above = below;
  above[0] = test::one_unit_up(6.375F);
  reference::fp4_e4m3_round_trip(below);
  reference::fp4_e4m3_round_trip(above);
  ASSERT_NE(below[0], above[0]);
  const Comparison c = compared("compress_kv", bf16_tensor({1, 16}, below), bf16_tensor({1, 16}, above));
  EXPECT_GT(c.mismatches, 6);
  EXPECT_EQ(c.judged_differences, 1);
  EXPECT_EQ(c.verdict, Verdict::pass) << c.reason;
}

TEST(CompareQuantised, AScaleTwoPowersOffFails) {
  std::vector<float> values = test::rounded_values(32, 12);
  values[0] = 4.0F;
  std::vector<float> coarse = values;
  reference::fp4_e8m0_round_trip(values);
  coarse[1] = 24.0F;  // lends its scale of 4 to the block, then is put back
  reference::fp4_e8m0_round_trip(coarse);
  coarse[1] = values[1];
  EXPECT_EQ(compared("index_q", bf16_tensor({1, 32}, values), bf16_tensor({1, 32}, coarse)).verdict, Verdict::fail);
}

TEST(CompareQuantised, EveryBlockRescaledFails) {
  // What a scale rounded up by one power does: each value is allowed, so many moved blocks are not.
  constexpr std::int64_t kBlocks = 20;
  std::vector<float> fine = test::rounded_values(kBlocks * 32, 12);
  std::vector<float> coarse = fine;
  for (std::size_t b = 0; b < kBlocks; ++b) {
    fine[b * 32] = 6.0F;
    coarse[b * 32] = test::one_unit_up(6.0F);
  }
  reference::fp4_e8m0_round_trip(fine);
  reference::fp4_e8m0_round_trip(coarse);
  const Comparison c = compared("index_q", bf16_tensor({kBlocks, 32}, fine), bf16_tensor({kBlocks, 32}, coarse));
  EXPECT_EQ(c.judged_differences, kBlocks);
  EXPECT_EQ(c.verdict, Verdict::fail);
}

TEST(CompareQuantised, SkippingTheQuantiserFails) {
  for (const std::string_view name : {"kv", "index_q", "compress_kv"}) {
    const auto values = test::rounded_values(256, 8);
    auto quantised = values;
    test::quantise(stage(name).rounding, quantised);
    const Comparison c = compared(name, bf16_tensor({4, 64}, quantised), bf16_tensor({4, 64}, values));
    EXPECT_EQ(c.verdict, Verdict::fail) << name;
  }
}

TEST(CompareQuantised, EachHalfOfRowsIsHeldToItsOwnGrid) {
  const Tensor reference = test::stage_value(stage("rows"), 8, 64, 21);
  for (const std::int64_t row : {0, 3, 4, 7}) {
    // The element of the row nearest to 1, where an fp8 step is 1/8 or 1/16 and an fp4 step at least 1/6.
    std::int64_t at = row * 64;
    for (std::int64_t i = at; i < row * 64 + 64; ++i) {
      at = std::fabs(get(reference, i) - 1) < std::fabs(get(reference, at) - 1) ? i : at;
    }
    Tensor candidate = reference;
    set(candidate, at, get(reference, at) * 1.15625F);  // more than one fp8 step, less than one fp4 step
    const Comparison c = compared("rows", reference, candidate);
    EXPECT_EQ(c.verdict, row < 4 ? Verdict::fail : Verdict::pass) << "row " << row << ": " << c.reason;
  }
}

TEST(CompareQuantised, RowsNeverWrittenAreEqualZeros) {
  Tensor reference = test::stage_value(stage("rows"), 8, 64, 21);
  for (std::int64_t i = 64; i < 128; ++i) {
    set(reference, i, 0.0F);
  }
  Tensor candidate = reference;
  for (std::int64_t i = 64; i < 128; ++i) {
    set(candidate, i, -0.0F);
  }
  Comparison c = compared("rows", reference, candidate);
  EXPECT_EQ(c.verdict, Verdict::pass);
  EXPECT_EQ(c.mismatches, 0);
  set(candidate, 127, 0.0625F);
  c = compared("rows", reference, candidate);
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_THAT(c.worst->index, ElementsAre(1, 63));
}

TEST(CompareQuantised, OneDeadRowOf2048CannotHide) {
  constexpr std::int64_t kDead = 2047;
  for (const std::string_view name : {"kv", "index_k", "compress_kv", "rows"}) {
    const Tensor reference = test::stage_value(stage(name), 2048, 32, 5);
    Tensor candidate = reference;
    for (std::int64_t i = 0; i < 32; ++i) {
      set(candidate, kDead * 32 + i, 0);
    }
    const Comparison c = compared(name, reference, candidate);
    EXPECT_EQ(c.verdict, Verdict::fail) << name;
    EXPECT_THAT(c.worst_row->index, ElementsAre(kDead)) << name;
  }
}

/// Two correct implementations: values that differ by one unit in about 0.6 % of the places, each quantised.
TEST(CompareQuantised, FlipsBeforeTheQuantiserNeverFail) {
  for (const std::string_view name : {"kv", "index_q", "compress_kv"}) {
    for (std::uint32_t seed = 0; seed < 400; ++seed) {
      test::Values draw(seed);
      const std::int64_t rows = seed % 2 == 0 ? 4 : 64;
      auto ours = test::rounded_values(rows * 32, seed + 1000);
      auto theirs = ours;
      for (float& v : theirs) {
        v = draw.once_in(166) ? test::one_unit_up(v) : v;
      }
      test::quantise(stage(name).rounding, ours);
      test::quantise(stage(name).rounding, theirs);
      const Comparison c = compared(name, bf16_tensor({rows, 32}, ours), bf16_tensor({rows, 32}, theirs));
      ASSERT_EQ(c.verdict, Verdict::pass) << name << " seed " << seed << ": " << c.reason;
    }
  }
}

}  // namespace
}  // namespace attndiff
