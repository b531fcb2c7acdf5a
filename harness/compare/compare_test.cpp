#include "harness/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/compare/test_tensors.h"

namespace attndiff {
namespace {

using test::get;
using test::one_unit_up;
using test::set;
using test::stage;
using test::stage_value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

const Tolerances& tolerances() {
  static const Tolerances t = Tolerances::defaults(test::family());
  return t;
}

Comparison compared(const StageInfo& s, const Tensor& reference, const Tensor& candidate) {
  return compare(s, &reference, &candidate, tolerances().at(s));
}

Comparison compared(std::string_view name, const Tensor& reference, const Tensor& candidate) {
  return compared(stage(name), reference, candidate);
}

Tensor transformed(const Tensor& t, float factor) {
  Tensor out = t;
  for (std::int64_t i = 0; i < t.count(); ++i) {
    set(out, i, get(t, i) * factor);
  }
  return out;
}

/// Every stage of the family is held to the same questions.
class EveryStage : public ::testing::TestWithParam<StageInfo> {
 protected:
  static constexpr std::int64_t kRows = 4;
  static constexpr std::int64_t kWidth = 32;
  const StageInfo& info_ = GetParam();
  Tensor value_ = stage_value(info_, kRows, kWidth, 11);
};

TEST_P(EveryStage, EqualPassesAndCounts) {
  const Comparison c = compared(info_, value_, value_);
  EXPECT_EQ(c.verdict, Verdict::pass) << c.reason;
  EXPECT_TRUE(c.counted);
  EXPECT_EQ(c.count, kRows * kWidth);
  EXPECT_EQ(c.mismatches, 0);
  EXPECT_EQ(c.max_abs, 0);
  EXPECT_EQ(c.rel_l2, 0);
}

TEST_P(EveryStage, ZeroedFails) {
  EXPECT_EQ(compared(info_, value_, Tensor(info_.dtype, value_.shape())).verdict, Verdict::fail);
}

TEST_P(EveryStage, NegatedFails) {
  if (info_.kind == StageKind::mask) {
    return;  // a mask has no sign
  }
  EXPECT_EQ(compared(info_, value_, transformed(value_, -1)).verdict, Verdict::fail);
}

TEST_P(EveryStage, EachElementCountsTheLastIncluded) {
  for (std::int64_t i = 0; i < value_.count(); ++i) {
    Tensor moved = value_;
    set(moved, i, info_.kind == StageKind::mask ? 1 - get(value_, i) : get(value_, i) + 8);
    const Comparison c = compared(info_, value_, moved);
    ASSERT_EQ(c.verdict, Verdict::fail) << info_.name << " element " << i;
    ASSERT_THAT(c.worst->index, ElementsAre(i / kWidth, i % kWidth)) << info_.name;
    ASSERT_EQ(c.worst->flat, i);
    ASSERT_EQ(c.mismatches, 1);
  }
}

TEST_P(EveryStage, NanAndInfinityFail) {
  if (info_.dtype != DType::bf16 && info_.dtype != DType::f32) {
    return;  // integers have neither
  }
  for (const float v : {kNan, kInf, -kInf}) {
    Tensor moved = value_;
    set(moved, value_.count() - 1, v);
    for (const Comparison& c : {compared(info_, value_, moved), compared(info_, moved, value_)}) {
      EXPECT_EQ(c.verdict, Verdict::fail) << info_.name;
      EXPECT_EQ(c.nonfinite_mismatches, 1);
      EXPECT_EQ(c.violations, 1);
      EXPECT_TRUE(std::isinf(c.max_abs) && std::isinf(c.rel_l2) && std::isinf(*c.bound_ratio));
      EXPECT_EQ(c.worst->flat, value_.count() - 1);
    }
    EXPECT_EQ(compared(info_, moved, moved).verdict, Verdict::pass) << info_.name;
  }
}

INSTANTIATE_TEST_SUITE_P(DeepseekV41, EveryStage,
                         ::testing::ValuesIn(test::family().stages.begin(), test::family().stages.end()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(CompareBf16, HoldsEachElementToOneUnitAndAPartOfTheRow) {
  // Row of +-1: rms 1, unit(1) = 2^-7, so 3 * 2^-7 is exactly the bound.
  Tensor reference(DType::bf16, {2, 64});
  for (std::int64_t i = 0; i < 128; ++i) {
    set(reference, i, i % 3 == 0 ? 1.0F : -1.0F);
  }
  Tensor candidate = reference;
  set(candidate, 66, 1.0F + 3 * 0x1p-7F);
  Comparison c = compared("og", reference, candidate);
  EXPECT_EQ(c.verdict, Verdict::pass) << c.reason;
  EXPECT_EQ(*c.bound_ratio, 1);
  EXPECT_EQ(c.max_ulp, 3);
  EXPECT_EQ(c.max_abs, 3 * 0x1p-7);
  set(candidate, 66, 1.0F + 4 * 0x1p-7F);
  c = compared("og", reference, candidate);
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_EQ(c.violations, 1);
  EXPECT_THAT(c.worst->index, ElementsAre(1, 2));
  EXPECT_EQ(c.worst->reference, 1);
  EXPECT_EQ(c.worst->candidate, 1.03125);
  EXPECT_EQ(c.worst->candidate_bits, "3f84");
}

TEST(CompareBf16, ARowIsTheInnermostAxis) {
  // Head 1 of the token is a hundred times larger than head 0: its size must not widen head 0's bound.
  Tensor reference = test::bf16_tensor({1, 2, 4}, {1, -1, 1, -1, 100, -100, 100, -100});
  Tensor candidate = reference;
  set(candidate, 1, -1.0625F);
  const Comparison c = compared("o", reference, candidate);
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_THAT(c.worst->index, ElementsAre(0, 0, 1));
  EXPECT_THAT(c.worst_row->index, ElementsAre(0, 0));
}

TEST(CompareBf16, OneDeadRowOf2048CannotHide) {
  constexpr std::int64_t kDead = 1234;
  const Tensor reference = stage_value(stage("out"), 2048, 64, 5);
  Tensor candidate = reference;
  for (std::int64_t i = 0; i < 64; ++i) {
    set(candidate, kDead * 64 + i, 0);
  }
  const Comparison c = compared("out", reference, candidate);
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_THAT(c.worst_row->index, ElementsAre(kDead));
  EXPECT_NEAR(c.worst_row->rel_l2, 1, 1e-12);
  EXPECT_LT(c.rel_l2, 0.03) << "over the whole tensor the row is nearly invisible";
  EXPECT_LT(c.mismatches, c.allowed_differences);
}

TEST(CompareBf16, ARowMayBeWrongAsAWholeAlthoughEachElementIsAllowed) {
  // 25 of a row's 32 elements move by the 3 units that are just allowed: 0.0207 of the row.
  Tensor reference(DType::bf16, {40, 32});
  for (std::int64_t i = 0; i < reference.count(); ++i) {
    set(reference, i, i % 2 == 0 ? 1.0F : -1.0F);
  }
  Tensor candidate = reference;
  for (std::int64_t i = 32; i < 32 + 25; ++i) {
    set(candidate, i, get(reference, i) * (1 + 3 * 0x1p-7F));
  }
  const Comparison c = compared("out", reference, candidate);
  EXPECT_EQ(c.violations, 0);
  EXPECT_LE(c.mismatches, c.allowed_differences);
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_THAT(c.reason, HasSubstr("rows beyond relative L2"));
  EXPECT_THAT(c.worst_row->index, ElementsAre(1));
}

TEST(CompareBf16, ManyTinyDifferencesFailByTheirNumber) {
  // What softmax weights rounded to bfloat16 do to `o`: one unit in 37 % of the elements.
  const Tensor reference = stage_value(stage("o"), 100, 64, 6);
  Tensor candidate = reference;
  test::Values values(1);
  for (std::int64_t i = 0; i < reference.count(); ++i) {
    if (values.below(100) < 37) {
      set(candidate, i, one_unit_up(get(reference, i)));
    }
  }
  const Comparison c = compared("o", reference, candidate);
  EXPECT_EQ(c.violations, 0);
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_THAT(c.reason, HasSubstr("elements differ, 128 may"));
}

TEST(CompareBf16, TheCountLimitIsSharp) {
  const Tensor reference = stage_value(stage("o"), 100, 64, 6);
  Tensor candidate = reference;
  for (std::int64_t i = 0; i < 128; ++i) {
    set(candidate, i * 50, one_unit_up(get(reference, i * 50)));
  }
  EXPECT_EQ(compared("o", reference, candidate).verdict, Verdict::pass);
  set(candidate, 1, one_unit_up(get(reference, 1)));
  const Comparison c = compared("o", reference, candidate);
  EXPECT_EQ(c.judged_differences, 129);
  EXPECT_EQ(c.verdict, Verdict::fail);
}

TEST(CompareBf16, ATinyTensorMayHaveAFlip) {
  for (const std::int64_t n : {2, 3, 8, 50, 100}) {
    const Tensor reference = stage_value(stage("index_w"), 1, n, 9);
    Tensor candidate = reference;
    set(candidate, n / 2, one_unit_up(get(reference, n / 2)));
    EXPECT_EQ(compared("index_w", reference, candidate).verdict, Verdict::pass) << n;
  }
}

TEST(CompareF32, TheBoundIsSharp) {
  Tensor reference(DType::f32, {1, 4});
  for (std::int64_t i = 0; i < 4; ++i) {
    set(reference, i, 1.0F + static_cast<float>(i));
  }
  Tensor candidate = reference;
  const float allowed = 0x1p-6F + 0x1p-8F;  // absolute + relative * 1
  set(candidate, 0, 1.0F + allowed);
  EXPECT_EQ(compared("lse", reference, candidate).verdict, Verdict::pass);
  set(candidate, 0, std::nextafter(1.0F + allowed, 2.0F));
  const Comparison c = compared("lse", reference, candidate);
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_GT(*c.bound_ratio, 1);
}

TEST(CompareState, AnEmptyPartialGroupIsNotDegenerate) {
  Tensor empty(DType::f32, {2, 2, 16});
  for (std::int64_t i = 32; i < 64; ++i) {
    set(empty, i, -kInf);
  }
  EXPECT_EQ(compared("comp_state", empty, empty).verdict, Verdict::pass);
  const Comparison c = compared("comp_state", empty, Tensor(DType::f32, {2, 2, 16}));
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_EQ(c.nonfinite_mismatches, 32);
}

TEST(CompareState, Float32SumsMayDifferButNotByTf32) {
  const Tensor reference = stage_value(stage("comp_state"), 4, 512, 3);
  const auto with_error = [&](float relative) {
    Tensor t = reference;
    for (std::int64_t i = 0; i < t.count(); ++i) {
      set(t, i, get(reference, i) * (1 + (i % 2 == 0 ? relative : -relative)));
    }
    return t;
  };
  EXPECT_EQ(compared("comp_state", reference, with_error(4e-6F)).verdict, Verdict::pass);
  EXPECT_EQ(compared("comp_state", reference, with_error(2e-4F)).verdict, Verdict::fail);
}

TEST(CompareState, ARingWithUnwrittenSlotsPasses) {
  Tensor ring(DType::bf16, {8, 32});
  const Tensor written = stage_value(stage("ring"), 1, 32, 2);
  for (std::int64_t i = 0; i < 32; ++i) {
    set(ring, i, get(written, i));
  }
  EXPECT_EQ(compared("ring", ring, ring).verdict, Verdict::pass);
  Tensor stale = ring;
  set(stale, 96, 0.5F);
  const Comparison c = compared("ring", ring, stale);
  EXPECT_EQ(c.verdict, Verdict::fail) << "a slot that was never written holds something";
  EXPECT_THAT(c.worst->index, ElementsAre(3, 0));
}

TEST(Compare, ConstantIsDegenerateOnlyWhereItWouldPass) {
  Tensor zeros(DType::bf16, {4, 8});
  EXPECT_EQ(compared("out", zeros, zeros).verdict, Verdict::degenerate);
  Tensor negative_zeros = transformed(zeros, -1);
  EXPECT_EQ(compared("out", zeros, negative_zeros).verdict, Verdict::degenerate);
  EXPECT_EQ(compared("out", stage_value(stage("out"), 4, 8, 1), zeros).verdict, Verdict::fail);
  EXPECT_THAT(compared("out", zeros, zeros).reason, HasSubstr("all 32 elements of the reference are 0"));
}

TEST(Compare, AConstantMaskOrSelectionIsAComparison) {
  const Tensor none(DType::u8, {4, 8});
  EXPECT_EQ(compared("candidates", none, none).verdict, Verdict::pass);
  const Tensor picks(DType::i32, {4, 8});
  EXPECT_EQ(compared("selection", picks, picks).verdict, Verdict::pass);
}

TEST(Compare, LargePositionsAreExact) {
  Tensor a(DType::i32, {1, 2});
  a.as<std::int32_t>()[1] = 2147483647;
  Tensor b = a;
  b.as<std::int32_t>()[1] = 2147483646;
  const Comparison c = compared("idx", a, b);
  EXPECT_EQ(c.verdict, Verdict::fail);
  EXPECT_EQ(c.max_abs, 1);
  EXPECT_FALSE(c.bound_ratio.has_value());
}

TEST(Compare, TheWorstPositionIsTheFarthest) {
  const Tensor a(DType::i32, {1, 4});
  Tensor b = a;
  b.as<std::int32_t>()[1] = 2;
  b.as<std::int32_t>()[3] = 9;
  EXPECT_EQ(compared("idx", a, b).worst->flat, 3);
}

TEST(Compare, ANonFiniteMismatchIsWorseThanAnyFiniteOne) {
  const Tensor reference = stage_value(stage("out"), 2, 32, 1);
  Tensor candidate = reference;
  set(candidate, 3, 1e30F);
  set(candidate, 40, kNan);
  set(candidate, 50, 2e30F);
  const Comparison c = compared("out", reference, candidate);
  EXPECT_THAT(c.worst->index, ElementsAre(1, 8));
  EXPECT_EQ(c.worst->candidate_bits, "7fc0");
  EXPECT_EQ(c.violations, 3);
}

TEST(Compare, NanOnBothSidesIsCounted) {
  Tensor t = stage_value(stage("out"), 2, 32, 1);
  set(t, 3, kNan);
  set(t, 60, kNan);
  const Comparison c = compared("out", t, t);
  EXPECT_EQ(c.verdict, Verdict::pass);
  EXPECT_EQ(c.both_nan, 2);
  EXPECT_EQ(c.mismatches, 0);
}

TEST(Compare, ShapeAndTypeAreSaid) {
  const Tensor a(DType::bf16, {2, 3});
  EXPECT_EQ(compared("out", a, Tensor(DType::bf16, {3, 2})).reason,
            "wrong shape: expected bfloat16 [2, 3], found bfloat16 [3, 2]");
  EXPECT_EQ(compared("out", a, Tensor(DType::f32, {2, 3})).reason,
            "wrong element type: expected bfloat16 [2, 3], found float32 [2, 3]");
  EXPECT_EQ(compared("out", Tensor(DType::f32, {2, 3}), a).reason,
            "wrong element type: expected bfloat16 [2, 3], found bfloat16 [2, 3] (and float32 in the reference)");
}

TEST(Compare, AnUndefinedTensorIsAbsent) {
  const Tensor a(DType::bf16, {2, 3});
  const Tensor undefined;
  const Comparison c = compared("out", a, undefined);
  EXPECT_EQ(c.verdict, Verdict::missing);
  EXPECT_EQ(c.reason, "the candidate has no such tensor, the reference has bfloat16 [2, 3]");
}

/// Many more rows than one thread takes at a time, with faults in rows far apart.
TEST(CompareInParts, FindsWhatOneThreadFinds) {
  constexpr std::int64_t kRows = 1000;
  constexpr std::int64_t kWidth = 16;
  const Tensor reference = stage_value(stage("out"), kRows, kWidth, 5);
  const auto at = [](std::int64_t row, std::int64_t column) { return row * kWidth + column; };
  const auto judged = [&](const Tensor& candidate, reference::ThreadPool* pool) {
    return compare(stage("out"), &reference, &candidate, tolerances().at(stage("out")), {}, pool);
  };
  for (const int threads : {1, 2, 5}) {
    reference::ThreadPool pool(threads);
    Tensor candidate = reference;
    set(candidate, at(3, 1), 40);
    set(candidate, at(640, 2), 900);
    set(candidate, at(999, 15), -50);
    const Comparison finite = judged(candidate, &pool);
    EXPECT_EQ(finite.verdict, Verdict::fail);
    EXPECT_EQ(finite.mismatches, 3);
    EXPECT_THAT(finite.bad, ElementsAre(at(3, 1), at(640, 2), at(999, 15)));
    EXPECT_EQ(finite.worst->flat, at(640, 2));
    EXPECT_THAT(finite.worst_row->index, ElementsAre(640));
    EXPECT_EQ(finite.reason, judged(candidate, nullptr).reason);
    EXPECT_EQ(finite.rel_l2, judged(candidate, nullptr).rel_l2);

    set(candidate, at(700, 4), kInf);
    set(candidate, at(800, 5), kNan);
    const Comparison nonfinite = judged(candidate, &pool);
    EXPECT_EQ(nonfinite.nonfinite_mismatches, 2);
    EXPECT_EQ(nonfinite.violations, 5);
    EXPECT_EQ(nonfinite.worst->flat, at(700, 4));  // the first that is not finite, before all finite ones
    EXPECT_EQ(nonfinite.reason, judged(candidate, nullptr).reason);
  }
}

TEST(CompareInParts, AConstantIsSeenAcrossParts) {
  reference::ThreadPool pool(3);
  Tensor constant(DType::bf16, {1000, 16});
  for (std::int64_t i = 0; i < constant.count(); ++i) {
    set(constant, i, 2);
  }
  const auto verdict = [&](const Tensor& t) {
    return compare(stage("out"), &t, &t, tolerances().at(stage("out")), {}, &pool).verdict;
  };
  EXPECT_EQ(verdict(constant), Verdict::degenerate);
  set(constant, constant.count() - 1, 3);
  EXPECT_EQ(verdict(constant), Verdict::pass);
}

}  // namespace
}  // namespace attndiff
