#include "harness/run/value_coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "reference/deepseek_v41/stages.h"

namespace attndiff {
namespace {

Tensor bf16(const Shape& shape, const std::vector<float>& values) {
  Tensor t(DType::bf16, shape);
  std::transform(values.begin(), values.end(), t.as<Bf16>().begin(), [](float v) { return to_bf16(v); });
  return t;
}

TEST(ValueCoverage, CountsDenormalsAndLargeFiniteValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor out = bf16({1, 6}, {0.0F, 0x1p-130F, -0x1p-127F, 0x1p-126F, -0x1p124F, kInf});
  Coverage coverage;
  count_values([&](int id) { return id == deepseek_v41::kOut ? &out : nullptr; }, nullptr, coverage);
  EXPECT_EQ(coverage.at("denormal_values"), 2);
  EXPECT_EQ(coverage.at("near_overflow_values"), 1);
}

TEST(ValueCoverage, CountsShiftedLse) {
  Tensor lse(DType::f32, {1, 4});
  const std::vector<float> values{32, 31, -33, -2};
  std::copy(values.begin(), values.end(), lse.as<float>().begin());
  Coverage coverage;
  count_values([&](int id) { return id == deepseek_v41::kLse ? &lse : nullptr; }, nullptr, coverage);
  EXPECT_EQ(coverage.at("raised_lse"), 1);
  EXPECT_EQ(coverage.at("lowered_lse"), 1);
}

TEST(ValueCoverage, ScoresAreShiftedWhenTheirSpreadIsBesideTheirMean) {
  Coverage coverage;
  count_shift(std::vector<float>{5, 6, 5, 6}, coverage);
  count_shift(std::vector<float>{-5, -6, -5, -6}, coverage);
  count_shift(std::vector<float>{5, -6, 5, 6}, coverage);
  count_shift(std::vector<float>{5, 6, 5}, coverage);  // too few
  EXPECT_EQ(coverage.at("raised_scores"), 1);
  EXPECT_EQ(coverage.at("lowered_scores"), 1);
}

TEST(ValueCoverage, TellsRowsOfInputs) {
  std::vector<float> x(6 * 64, 0.0F);
  const auto row = [&](std::size_t r) { return x.begin() + static_cast<std::ptrdiff_t>(r * 64); };
  std::fill(row(1), row(2), 0.5F);  // constant; row 0 is zero, which is not
  std::generate(row(2), row(3), [n = 0]() mutable { return static_cast<float>(++n); });
  std::copy(row(2), row(3), row(3));                                                      // a repetition
  std::generate(row(4), row(5), [n = 0]() mutable { return ++n == 9 ? 100.0F : 1.0F; });  // an outlier
  std::generate(row(5), row(6), [n = 0]() mutable { return ++n % 2 == 0 ? 1.0F : -1.0F; });
  Coverage coverage;
  count_input_rows(bf16({6, 64}, x), coverage);
  EXPECT_EQ(coverage.at("constant_input_rows"), 1);
  EXPECT_EQ(coverage.at("repeated_input_rows"), 1);
  EXPECT_EQ(coverage.at("outlier_input_rows"), 1);
}

}  // namespace
}  // namespace attndiff
