#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "harness/compare/bounded.h"
#include "harness/compare/compare.h"
#include "harness/compare/test_tensors.h"
#include "harness/compare/tolerance.h"

namespace attndiff {
namespace {

using test::bf16_tensor;
using test::stage;

constexpr std::int64_t kWidth = 64;

Comparison bounded(const std::vector<float>& y) {
  Tensor unrounded(DType::f32, {1, kWidth});
  std::copy(y.begin(), y.end(), unrounded.as<float>().begin());
  const Tensor rounded = to_bf16(unrounded);
  const StageSlack slack{.values = Tensor(DType::f32, {1, kWidth})};
  reference::ThreadPool pool(2);
  return compare_bounded(stage("o"), rounded, &unrounded, slack, rounded, pool);
}

/// A query that attends one row of codes with a weight of nearly 1, and others hardly: mantissas just below codes.
TEST(BoundedRows, NearlyEqualMantissasErrAlike) {
  std::vector<float> y;
  for (std::int64_t i = 0; i < kWidth; ++i) {
    const float code = std::ldexp(i % 2 == 0 ? 1.25F : -1.25F, static_cast<int>(i % 3));
    y.push_back(code * (1 - 0x1.cp-9F) * (1 + static_cast<float>(i) * 0x1p-20F));
  }
  const Comparison c = bounded(y);
  EXPECT_EQ(c.verdict, Verdict::pass) << c.reason;
}

/// The same sizes of error on mantissas apart are no rounding's: each value lies just under half a unit off.
TEST(BoundedRows, MantissasApartDoNot) {
  std::vector<float> y;
  for (std::int64_t i = 0; i < kWidth; ++i) {
    y.push_back(1 + static_cast<float>(2 * i % 128) * 0x1p-7F + 0x1.ep-9F);
  }
  const Comparison c = bounded(y);
  EXPECT_EQ(c.verdict, Verdict::fail) << c.reason;
}

constexpr double kUnit = 0x1p-7;  // of bfloat16 from 1 to 2

/// A row of sixteen mantissas apart, each a bf16 value, with a slack of one unit where it may move on the way. The
/// first `moved` have moved by that and half a unit more.
struct MovedRow {
  static constexpr std::int64_t kElements = 16;
  MovedRow(std::int64_t moved, double more) {
    for (std::int64_t i = 0; i < kElements; ++i) {
      const double value = 1 + 6 * static_cast<double>(i) * kUnit;
      test::set(unrounded, i, static_cast<float>(value - (i < moved ? more : 0)));
      test::set(slack.values, i, static_cast<float>(i < moved ? kUnit : 0));
      candidate.push_back(static_cast<float>(value + (i < moved ? kUnit : 0)));
    }
  }

  [[nodiscard]] Comparison compared() const {
    reference::ThreadPool pool(2);
    return compare_bounded(stage("q"), to_bf16(unrounded), &unrounded, slack, bf16_tensor({1, kElements}, candidate),
                           pool);
  }

  Tensor unrounded{DType::f32, {1, kElements}};
  StageSlack slack{.values = Tensor(DType::f32, {1, kElements})};
  std::vector<float> candidate;
};

void expect_only_noise(const Comparison& c) {
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_NE(c.reason.find("1 rows err more than one rounding does"), std::string::npos) << c.reason;
  EXPECT_EQ(c.reason.find("beyond their bound"), std::string::npos) << c.reason;
}

/// A rounding before the rotation that falls to the other side moves both of a pair by all of their slack.
TEST(BoundedRows, OneRoundingOnTheWayCountsWhole) {
  MovedRow pair(2, kUnit / 2);
  pair.slack.moves = {static_cast<float>(std::hypot(kUnit, kUnit))};
  const Comparison c = pair.compared();
  EXPECT_EQ(c.verdict, Verdict::pass) << c.reason;
}

/// Where nothing is rounded on the way, slack is what many small errors may add up to, and so much of it no chance.
TEST(BoundedRows, WithoutOneAQuarterOfTheSlackDoes) { expect_only_noise(MovedRow(2, kUnit / 2).compared()); }

TEST(BoundedRows, RoundingsOnTheWayDoNotAllFallToTheOtherSide) {
  MovedRow all(MovedRow::kElements, kUnit / 4);
  all.slack.moves = {static_cast<float>(std::hypot(kUnit, kUnit))};
  expect_only_noise(all.compared());
}

/// An element that overflows on both sides agrees, and is no part of what its row may err.
TEST(BoundedRows, AnElementThatOverflowsDoesNotExcuseTheRest) {
  MovedRow row(MovedRow::kElements, kUnit / 4);
  test::set(row.unrounded, 0, 3.4e38F);  // finite in float32, infinite in bf16
  row.candidate[0] = std::numeric_limits<float>::infinity();
  expect_only_noise(row.compared());
}

Comparison free_compared(const char* name, const Tensor& reference, const Tensor& candidate) {
  return compare(stage(name), &reference, &candidate, Tolerances::defaults(test::family()).at(stage(name)));
}

/// Where rows cancel, one order of the sum leaves zero and another a residue, in as many elements as share the codes.
TEST(FreeRows, ResiduesOfCancellationAreNotCounted) {
  std::vector<float> ours = test::rounded_values(kWidth, 3);
  std::vector<float> theirs = ours;
  for (std::size_t i = 0; i < 20; ++i) {
    ours[i] = 0;
    theirs[i] = 0x1p-22F;
  }
  const Comparison residue = free_compared("o", bf16_tensor({1, kWidth}, ours), bf16_tensor({1, kWidth}, theirs));
  EXPECT_EQ(residue.verdict, Verdict::pass) << residue.reason;
  EXPECT_EQ(residue.mismatches, 20);
  EXPECT_EQ(residue.judged_differences, 0);
  for (std::size_t i = 0; i < 20; ++i) {
    theirs[i] = 0x1p-12F;
  }
  const Comparison more = free_compared("o", bf16_tensor({1, kWidth}, ours), bf16_tensor({1, kWidth}, theirs));
  EXPECT_EQ(more.verdict, Verdict::fail) << more.reason;
}

/// An lse near zero has no relative error worth the name: its absolute tolerance judges it.
TEST(FreeRows, ALogarithmNearZeroIsHeldToItsAbsoluteTolerance) {
  Tensor ours(DType::f32, {1, 2});
  Tensor theirs(DType::f32, {1, 2});
  test::set(ours, 0, -1e-9F);
  test::set(ours, 1, 6e-9F);
  test::set(theirs, 0, -1e-9F);
  test::set(theirs, 1, 7e-10F);
  EXPECT_EQ(free_compared("lse", ours, theirs).verdict, Verdict::pass);
  test::set(theirs, 1, 0.1F);
  EXPECT_EQ(free_compared("lse", ours, theirs).verdict, Verdict::fail);
}

}  // namespace
}  // namespace attndiff
