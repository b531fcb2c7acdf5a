#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "harness/compare/bounded.h"
#include "harness/compare/test_tensors.h"

namespace attndiff {
namespace {

using test::set;
using test::stage;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Rows of bf16 values from 1 to 2, each `center`'s own rounding, without slack: every row is sound.
struct Case {
  Case(std::int64_t rows, std::int64_t width) : center(DType::f32, {rows, width}) {
    slack.values = Tensor(DType::f32, {rows, width});
    for (std::int64_t i = 0; i < center.count(); ++i) {
      set(center, i, 1 + static_cast<float>(i * 37 % 128) * 0x1p-7F);
    }
    reference = candidate = to_bf16(center);
  }
  [[nodiscard]] Comparison run() const {
    reference::ThreadPool pool(2);
    return compare_bounded(stage("out"), reference, &center, slack, candidate, pool);
  }
  Tensor center;
  StageSlack slack;
  Tensor reference;
  Tensor candidate;
};

/// More rows than parts, so that a part has several: one element wrong, wherever it is.
TEST(Bounded, NoRowOfAnyPartIsPassedOver) {
  for (const std::int64_t row : {0, 1, 2, 3, 499, 640, 996, 997, 998, 999}) {
    Case c(1000, 16);
    ASSERT_EQ(c.run().verdict, Verdict::pass);
    set(c.candidate, row * 16 + 15, 3);
    const Comparison got = c.run();
    EXPECT_EQ(got.verdict, Verdict::fail) << row;
    EXPECT_EQ(got.violations, 1) << row;
    EXPECT_EQ(got.worst->flat, row * 16 + 15);
  }
}

/// Rows whose elements all keep their bounds, and err as a row: in a part behind the first one as well.
TEST(Bounded, AFaultyRowIsFoundBehindSoundOnes) {
  for (const std::int64_t row : {0, 1, 500, 999}) {
    Case c(1000, 64);
    set(c.center, 64 * 250 + 3,
        test::get(c.reference, 64 * 250 + 3) + 0x1.fp-9F);  // sound, and the worst element of all
    for (std::int64_t i = row * 64; i < (row + 1) * 64; ++i) {
      set(c.center, i, 1 + static_cast<float>(2 * i % 128) * 0x1p-7F + 0x1.ep-9F);
      set(c.reference, i, static_cast<float>(1 + static_cast<float>(2 * i % 128) * 0x1p-7F));
      set(c.candidate, i, static_cast<float>(1 + static_cast<float>(2 * i % 128) * 0x1p-7F));
    }
    const Comparison got = c.run();
    EXPECT_EQ(got.violations, 0);
    EXPECT_EQ(got.verdict, Verdict::fail) << row;
    EXPECT_NE(got.reason.find("1 rows err to one side"), std::string::npos) << got.reason;
  }
}

/// Half a unit and the slack, and nothing more: on the row's fast way and, beside a NaN, on its slow one.
TEST(Bounded, TheBoundIsSharp) {
  for (const bool slow : {false, true}) {
    Case c(1, 256);  // wide, so that one element is far from a row's limits
    if (slow) {
      set(c.center, 9, kNan);
      set(c.reference, 9, kNan);
      set(c.candidate, 9, kNan);
    }
    set(c.slack.values, 4, 0x1p-9F);
    set(c.reference, 4, 1.5F);
    set(c.candidate, 4, 1.5F + 0x1p-7F);
    set(c.center, 4, 1.5F + 0x1p-9F);  // 3/4 of a unit off: half a unit and 2^-9 exactly
    EXPECT_EQ(c.run().verdict, Verdict::pass) << slow << c.run().reason;
    set(c.center, 4, 1.5F + 0x1p-9F - 0x1p-14F);
    const Comparison got = c.run();
    EXPECT_EQ(got.verdict, Verdict::fail) << slow;
    EXPECT_EQ(got.violations, 1);
    EXPECT_NE(got.reason.find("beyond their bound"), std::string::npos) << got.reason;
  }
}

TEST(Bounded, NotFiniteOnOneSideFails) {
  for (const float v : {kNan, kInf, -kInf}) {
    Case c(3, 32);
    set(c.candidate, 95, v);
    EXPECT_EQ(c.run().verdict, Verdict::fail) << v;
    EXPECT_EQ(c.run().bad, std::vector<std::int64_t>{95});
  }
}

/// Where a slack is not finite, only the reference's own value passes.
TEST(Bounded, AnInfiniteSlackAllowsNothing) {
  for (const float v : {kNan, kInf}) {
    Case c(1, 64);
    set(c.slack.values, 7, v);
    EXPECT_EQ(c.run().verdict, Verdict::pass) << c.run().reason;
    set(c.candidate, 7, test::get(c.reference, 7) + 0x1p-7F);
    EXPECT_EQ(c.run().verdict, Verdict::fail) << v;
  }
}

/// Of more violations than are kept, the first are, whichever thread found which.
TEST(Bounded, TheFirstViolationsAreKept) {
  constexpr std::int64_t kWidth = 4096;
  constexpr std::int64_t kRows = static_cast<std::int64_t>(kMostBad) / kWidth + 300;
  const Tensor zeros(DType::f32, {kRows, kWidth});
  Tensor ones(DType::f32, {kRows, kWidth});
  for (float& v : ones.as<float>()) {
    v = 1;
  }
  const StageSlack slack{.values = Tensor(DType::f32, {kRows, kWidth})};
  for (const int threads : {1, 3}) {
    reference::ThreadPool pool(threads);
    for (const Comparison& c : {compare_bounded(stage("lse"), zeros, nullptr, slack, ones, pool),
                                compare(stage("lse"), &zeros, &ones, StageTolerance{}, {}, &pool)}) {
      EXPECT_EQ(c.violations, kRows * kWidth);
      ASSERT_EQ(c.bad.size(), kMostBad);
      for (std::size_t i = 0; i < kMostBad; ++i) {
        ASSERT_EQ(c.bad[i], static_cast<std::int64_t>(i));
      }
    }
  }
}

TEST(Bounded, AConstantShowsNothing) {
  Case c(2, 16);
  for (std::int64_t i = 0; i < 32; ++i) {
    set(c.center, i, 0);
    set(c.reference, i, 0);
    set(c.candidate, i, 0);
  }
  EXPECT_EQ(c.run().verdict, Verdict::degenerate);
}

}  // namespace
}  // namespace attndiff
