#include "harness/compare/detail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "harness/compare/detail_keeper.h"
#include "harness/compare/test_tensors.h"

namespace attndiff {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr float kInf = std::numeric_limits<float>::infinity();
const std::vector<std::string> kAxes{"token", "head", "column"};

StageInfo stage(StageKind kind, DType dtype) {
  StageInfo info;
  info.name = "o";
  info.kind = kind;
  info.dtype = dtype;
  info.rounding = Rounding::none;
  return info;
}

/// Ones everywhere, f32.
Tensor ones(const Shape& shape) {
  Tensor t(DType::f32, shape);
  std::ranges::fill(t.as<float>(), 1.0F);
  return t;
}

Tensor positions(const Shape& shape, const std::vector<std::int32_t>& values) {
  Tensor t(DType::i32, shape);
  std::ranges::copy(values, t.as<std::int32_t>().begin());
  return t;
}

ComparisonDetail details(const StageInfo& info, const Tensor& a, const Tensor& b, const ChoiceScores& scores = {}) {
  return detail_of(info, kAxes, a, b, compare(info, &a, &b, StageTolerance{}), scores).value();
}

TEST(Detail, CountsErrorsBySizeAndSign) {
  const StageInfo info = stage(StageKind::real, DType::f32);
  const Tensor a = ones({1, 8});
  Tensor b = a;
  const float unit = std::ldexp(1.0F, -23);
  b.as<float>()[0] += unit;
  b.as<float>()[1] += 5 * unit;
  b.as<float>()[2] -= 2 * unit;
  b.as<float>()[3] = kInf;
  b.as<float>()[4] = 1e30F;
  const ErrorHistogram h = details(info, a, b).histogram;
  EXPECT_EQ(h.unit, "float32 unit");
  EXPECT_EQ(h.equal, 3);
  EXPECT_EQ(h.nonfinite, 1);
  EXPECT_EQ(h.above[1], 1) << "1 unit";
  EXPECT_EQ(h.above[3], 1) << "5 units lie in [4, 8)";
  EXPECT_EQ(h.below[2], 1) << "2 units lie in [2, 4)";
  EXPECT_EQ(h.above.back(), 1) << "everything larger";
  EXPECT_EQ(std::accumulate(h.above.begin(), h.above.end(), h.equal + h.nonfinite) +
                std::accumulate(h.below.begin(), h.below.end(), std::int64_t{0}),
            8);
}

TEST(Detail, MapsShowTheHeadThatIsWrong) {
  const StageInfo info = stage(StageKind::real, DType::f32);
  const Tensor a = ones({3, 4, 8});
  Tensor b = a;
  for (std::size_t column = 0; column < 8; ++column) {
    b.as<float>()[(1 * 4 + 2) * 8 + column] = -1;
  }
  const ComparisonDetail d = details(info, a, b);
  EXPECT_THAT(d.shape, ElementsAre(3, 4, 8));
  ASSERT_THAT(d.maps, SizeIs(3));
  EXPECT_EQ(d.maps[0].row_axis, "token");
  EXPECT_EQ(d.maps[0].column_axis, "head");
  // |d| is twice the rms: [2, 4), the letter after 'q' = [1, 2); a capital, since nothing may differ.
  EXPECT_THAT(d.maps[0].rows, ElementsAre("....", "..R.", "...."));
  EXPECT_THAT(d.maps[1].rows, ElementsAre("........", "RRRRRRRR", "........"));
  EXPECT_EQ(d.maps[2].row_axis, "head");
  EXPECT_THAT(d.maps[2].rows, ElementsAre("........", "........", "RRRRRRRR", "........"));
}

TEST(Detail, MapsAreBoundedAndEndInAPartialTile) {
  const StageInfo info = stage(StageKind::real, DType::f32);
  const Tensor a = ones({130, 600});
  Tensor b = a;
  b.as<float>().back() = std::numeric_limits<float>::quiet_NaN();
  b.as<float>()[0] = 1 + std::ldexp(1.0F, -20);
  const ComparisonDetail d = details(info, a, b);
  ASSERT_THAT(d.maps, SizeIs(1));
  const HeatMap& map = d.maps[0];
  EXPECT_EQ(map.row_tile, 4);
  EXPECT_EQ(map.column_tile, 16);
  ASSERT_THAT(map.rows, SizeIs(33));
  EXPECT_THAT(map.rows[0], SizeIs(38));
  EXPECT_EQ(map.rows.back().back(), '!');
  EXPECT_EQ(map.rows[0][0], 'A');
}

TEST(Detail, OneAxisGivesOneRow) {
  const StageInfo info = stage(StageKind::real, DType::f32);
  const Tensor a = ones({1, 1, 4});
  Tensor b = a;
  b.as<float>()[3] = 2;
  const ComparisonDetail d = details(info, a, b);
  ASSERT_THAT(d.maps, SizeIs(1));
  EXPECT_EQ(d.maps[0].row_axis, "");
  EXPECT_EQ(d.maps[0].column_axis, "column");
  EXPECT_THAT(d.maps[0].rows, ElementsAre("...Q"));
}

TEST(Detail, WithinItsBoundALetterIsSmall) {
  StageInfo info = stage(StageKind::real, DType::f32);
  StageTolerance tolerance;
  tolerance.kind = ToleranceKind::f32;
  tolerance.absolute = 0.25;
  tolerance.row_rel_l2 = 1;
  const Tensor a = ones({1, 4});
  Tensor b = a;
  b.as<float>()[1] = 1.125F;
  b.as<float>()[2] = 1.5F;
  const auto d = detail_of(info, kAxes, a, b, compare(info, &a, &b, tolerance), {}).value();
  EXPECT_THAT(d.maps[0].rows, ElementsAre(".nP."));
}

TEST(Detail, TheWorstElementsBeginWithTheComparisonsOwn) {
  const StageInfo info = stage(StageKind::real, DType::f32);
  const Tensor a = ones({2, 16});
  Tensor b = a;
  for (std::size_t i = 0; i < 16; ++i) {
    b.as<float>()[16 + i] = 2.0F + static_cast<float>(i);
  }
  const Comparison c = compare(info, &a, &b, StageTolerance{});
  const auto d = detail_of(info, kAxes, a, b, c, {}).value();
  ASSERT_THAT(d.worst, SizeIs(ComparisonDetail::kMostElements));
  EXPECT_EQ(d.worst[0].flat, c.worst->flat);
  EXPECT_EQ(d.worst[0].flat, 31);
  EXPECT_EQ(d.worst[1].flat, 30);
  EXPECT_EQ(d.worst[9].flat, 22);
  EXPECT_EQ(d.worst[0].candidate, 17);
}

TEST(Detail, SelectionsStandSideBySideWithScoresAndMargins) {
  const StageInfo info = stage(StageKind::index, DType::i32);
  const Tensor a = positions({3, 3}, {0, 1, -1, 0, 2, 3, 1, 2, 3});
  const Tensor b = positions({3, 3}, {0, 1, -1, 0, 1, 3, 1, 2, 3});
  Tensor ours(DType::f32, {3, 4});
  Tensor theirs(DType::f32, {3, 4});
  const float row[] = {4, 1, 2, 3};
  std::ranges::copy(row, ours.as<float>().begin() + 4);
  std::ranges::copy(row, theirs.as<float>().begin() + 4);
  theirs.as<float>()[4 + 1] = 2.5F;
  const ComparisonDetail d = details(info, a, b, {.reference = &ours, .candidate = &theirs});
  EXPECT_EQ(d.disputed_rows, 1);
  ASSERT_THAT(d.disputed, SizeIs(1));
  const DisputedRow& r = d.disputed[0];
  EXPECT_EQ(r.row, 1);
  EXPECT_EQ(r.differing, 2);
  ASSERT_THAT(r.positions, SizeIs(2));
  EXPECT_EQ(r.positions[0].position, 1);
  EXPECT_FALSE(r.positions[0].by_reference);
  EXPECT_TRUE(r.positions[0].by_candidate);
  EXPECT_EQ(r.positions[0].reference_score, 1.0);
  EXPECT_EQ(r.positions[0].candidate_score, 2.5);
  EXPECT_TRUE(r.positions[1].by_reference);
  EXPECT_EQ(r.reference_margin, 1.0);
  EXPECT_EQ(r.candidate_margin, 0.5);
}

TEST(Detail, AChoiceWithoutScoresHasNoMargin) {
  const StageInfo info = stage(StageKind::mask, DType::u8);
  Tensor a(DType::u8, {1, 40});
  Tensor b(DType::u8, {1, 40});
  std::ranges::fill(a.as<std::uint8_t>(), std::uint8_t{1});
  const ComparisonDetail d = details(info, a, b);
  ASSERT_THAT(d.disputed, SizeIs(1));
  EXPECT_EQ(d.disputed[0].differing, 40);
  EXPECT_THAT(d.disputed[0].positions, SizeIs(DisputedRow::kMostPositions));
  EXPECT_FALSE(d.disputed[0].reference_margin.has_value());
  EXPECT_FALSE(d.disputed[0].positions[0].reference_score.has_value());
}

TEST(Detail, TensorsOfDifferentFormHaveNone) {
  const StageInfo info = stage(StageKind::real, DType::f32);
  const Tensor a = ones({2, 2});
  const Tensor b = ones({4});
  EXPECT_FALSE(detail_of(info, kAxes, a, b, compare(info, &a, &b, StageTolerance{}), {}).has_value());
}

/// A comparison with a detail, failing or with that part of its bound used.
ComparisonRecord detailed(Verdict verdict, double ratio) {
  ComparisonRecord c;
  c.result.verdict = verdict;
  c.result.counted = true;
  c.result.mismatches = 1;
  c.result.bound_ratio = ratio;
  c.detail = std::make_shared<ComparisonDetail>();
  return c;
}

TEST(KeepWorstDetails, FailuresFirstThenTheLeastHeadroom) {
  RunReport report;
  report.fixtures.resize(2);
  for (std::size_t i = 0; i < 300; ++i) {
    report.fixtures[i % 2].comparisons.push_back(detailed(Verdict::pass, 0.001 * static_cast<double>(i)));
  }
  report.fixtures[1].comparisons.push_back(detailed(Verdict::missing, 0));
  keep_worst_details(report);
  std::size_t kept = 0;
  for (const FixtureReport& f : report.fixtures) {
    for (const ComparisonRecord& c : f.comparisons) {
      kept += c.detail != nullptr ? 1 : 0;
      const bool worst = fails_run(c.result.verdict) || *c.result.bound_ratio > 0.1005;
      EXPECT_EQ(c.detail != nullptr, worst) << *c.result.bound_ratio;
    }
  }
  EXPECT_EQ(kept, kMostDetails);
}

}  // namespace
}  // namespace attndiff
