#include "reference/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "reference/contract/bfloat16.h"

namespace attndiff::reference {
namespace {

using testing::Each;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> e2m1_magnitudes() { return {0, 0.5, 1, 1.5, 2, 3, 4, 6}; }

std::vector<double> e4m3_magnitudes() {
  std::vector<double> values;
  for (int code = 0; code <= 0x7e; ++code) {
    const int exponent = code >> 3;
    const int mantissa = code & 7;
    values.push_back(exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10));
  }
  return values;
}

/// The nearest grid value with the sign of `v`, of two equally near the one at the even place; saturating.
double nearest(const std::vector<double>& magnitudes, double v) {
  const double a = std::fabs(v);
  std::size_t best = 0;
  for (std::size_t i = 1; i < magnitudes.size(); ++i) {
    const double d = std::fabs(magnitudes[i] - a) - std::fabs(magnitudes[best] - a);
    if (d < 0 || (d == 0 && i % 2 == 0)) {
      best = i;
    }
  }
  return std::copysign(magnitudes[best], v);
}

double power_at_least(double v) {
  double power = 0x1p-126;
  while (power < v) {
    power *= 2;
  }
  return power;
}

enum class Format { fp8, fp4_e8m0, fp4_e4m3 };

/// The specification's round trip of one block by search. Quotients are float32, as the text says.
std::vector<float> searched_round_trip(Format format, const std::vector<float>& block) {
  const bool fp8 = format == Format::fp8;
  float amax = fp8 ? 1e-4F : format == Format::fp4_e8m0 ? 6 * 0x1p-126F : 6 * 0x1p-9F;
  for (const float v : block) {
    amax = std::max(amax, std::fabs(v));
  }
  const float quotient = amax / (fp8 ? 448.0F : 6.0F);
  const double scale = format == Format::fp4_e4m3 ? nearest(e4m3_magnitudes(), quotient) : power_at_least(quotient);
  std::vector<float> result;
  for (const float v : block) {
    const auto x = static_cast<double>(v / static_cast<float>(scale));
    const double code = nearest(fp8 ? e4m3_magnitudes() : e2m1_magnitudes(), x);
    result.push_back(static_cast<float>(code * scale));
  }
  return result;
}

std::vector<float> round_trip(Format format, std::vector<float> row) {
  switch (format) {
    case Format::fp8:
      fp8_round_trip(row);
      break;
    case Format::fp4_e8m0:
      fp4_e8m0_round_trip(row);
      break;
    case Format::fp4_e4m3:
      fp4_e4m3_round_trip(row);
      break;
  }
  return row;
}

std::size_t block_size(Format format) { return format == Format::fp4_e4m3 ? 16 : 32; }

/// Normal bf16 values times a power of two drawn from [2^low, 2^high].
std::vector<float> random_row(std::mt19937& engine, std::size_t size, int low, int high) {
  std::normal_distribution<float> normal;
  const float magnitude = std::ldexp(1.0F, std::uniform_int_distribution<int>(low, high)(engine));
  std::vector<float> row(size);
  for (float& v : row) {
    v = round_bf16(normal(engine) * magnitude);
  }
  return row;
}

class RoundTrip : public testing::TestWithParam<Format> {};

TEST_P(RoundTrip, EqualsASearchOverTheGrid) {
  std::mt19937 engine(7);
  for (int i = 0; i < 2000; ++i) {
    const auto block = random_row(engine, block_size(GetParam()), -20, 12);
    ASSERT_EQ(round_trip(GetParam(), block), searched_round_trip(GetParam(), block)) << "block " << i;
  }
}

TEST_P(RoundTrip, EveryBlockHasItsOwnScale) {
  std::mt19937 engine(8);
  const std::size_t size = block_size(GetParam());
  auto row = random_row(engine, size, 0, 0);
  const auto second = random_row(engine, size, 9, 9);
  row.insert(row.end(), second.begin(), second.end());
  auto expected = searched_round_trip(GetParam(), {row.begin(), row.begin() + static_cast<std::ptrdiff_t>(size)});
  const auto rest = searched_round_trip(GetParam(), second);
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(round_trip(GetParam(), row), expected);
}

TEST_P(RoundTrip, AShorterLastBlockIsABlockOfItsOwn) {
  std::mt19937 engine(9);
  const std::size_t size = block_size(GetParam());
  auto row = random_row(engine, size, 6, 6);
  const auto last = random_row(engine, size / 2, 0, 0);
  row.insert(row.end(), last.begin(), last.end());
  const auto found = round_trip(GetParam(), row);
  const std::vector<float> tail(found.begin() + static_cast<std::ptrdiff_t>(size), found.end());
  EXPECT_EQ(tail, searched_round_trip(GetParam(), last));
}

TEST_P(RoundTrip, RepeatingItChangesNothing) {
  std::mt19937 engine(10);
  for (int i = 0; i < 500; ++i) {
    // Above 2^-3, where no e4m3 scale is subnormal: those round amax / 6 too coarsely to be found again.
    const auto once = round_trip(GetParam(), random_row(engine, block_size(GetParam()), -3, 12));
    ASSERT_EQ(round_trip(GetParam(), once), once) << "block " << i;
  }
}

TEST_P(RoundTrip, AZeroBlockStaysZeroWithItsSigns) {
  std::vector<float> row(block_size(GetParam()), 0.0F);
  row[3] = -0.0F;
  const auto found = round_trip(GetParam(), row);
  EXPECT_THAT(found, Each(0.0F));
  EXPECT_TRUE(std::signbit(found[3]));
  EXPECT_FALSE(std::signbit(found[4]));
}

TEST_P(RoundTrip, ANanMakesItsBlockNanAndNoOther) {
  const std::size_t size = block_size(GetParam());
  std::vector<float> row(2 * size, 1.0F);
  row[size + 1] = kNan;
  const auto found = round_trip(GetParam(), row);
  for (std::size_t i = 0; i < row.size(); ++i) {
    EXPECT_EQ(std::isnan(found[i]), i >= size) << i;
  }
}

std::string name_of(const testing::TestParamInfo<Format>& format) {
  switch (format.param) {
    case Format::fp8:
      return "fp8";
    case Format::fp4_e8m0:
      return "fp4_e8m0";
    case Format::fp4_e4m3:
      return "fp4_e4m3";
  }
  return "unknown";
}

INSTANTIATE_TEST_SUITE_P(Formats, RoundTrip, testing::Values(Format::fp8, Format::fp4_e8m0, Format::fp4_e4m3), name_of);

std::vector<float> block_with(std::size_t size, float amax) {
  std::vector<float> block(size, 0.0F);
  block[size / 2] = -amax;
  return block;
}

TEST(Fp8Scale, DoublesJustAboveAPowerOfTwoTimesTheLargestCode) {
  EXPECT_EQ(fp8_scale(block_with(32, 448.0F)), 1.0F);
  EXPECT_EQ(fp8_scale(block_with(32, 450.0F)), 2.0F);  // the next bf16
  EXPECT_EQ(fp8_scale(block_with(32, 446.0F)), 1.0F);
  EXPECT_EQ(fp8_scale(block_with(32, 224.0F)), 0.5F);
}

TEST(Fp8Scale, HasAFloor) {
  // 1e-4 / 448 = 2.2e-7, between 2^-23 and 2^-22.
  EXPECT_EQ(fp8_scale(block_with(32, 0.0F)), 0x1p-22F);
  EXPECT_EQ(fp8_scale(block_with(32, 1e-30F)), 0x1p-22F);
}

TEST(Fp4E8m0Scale, DoublesJustAboveAPowerOfTwoTimesTheLargestCode) {
  EXPECT_EQ(fp4_e8m0_scale(block_with(32, 6.0F)), 1.0F);
  EXPECT_EQ(fp4_e8m0_scale(block_with(32, 6.03125F)), 2.0F);
  EXPECT_EQ(fp4_e8m0_scale(block_with(32, 12.0F)), 2.0F);
  EXPECT_EQ(fp4_e8m0_scale(block_with(32, 0.0F)), 0x1p-126F);
}

TEST(Fp4E4m3Scale, IsTheNearestE4m3) {
  EXPECT_EQ(fp4_e4m3_scale(block_with(16, 6.0F)), 1.0F);
  EXPECT_EQ(fp4_e4m3_scale(block_with(16, 6.375F)), 1.0F);  // 1.0625 lies between 1 and 1.125: the even code
  EXPECT_EQ(fp4_e4m3_scale(block_with(16, 6.40625F)), 1.125F);
  EXPECT_EQ(fp4_e4m3_scale(block_with(16, 0.0F)), 0x1p-9F);
  EXPECT_EQ(fp4_e4m3_scale(block_with(16, 2688.0F)), 448.0F);
  EXPECT_EQ(fp4_e4m3_scale(block_with(16, 1e6F)), 448.0F);
}

TEST(Fp4E4m3, ValuesAboveTheSaturatedScaleAreClamped) {
  const auto found = round_trip(Format::fp4_e4m3, block_with(16, 32768.0F));
  EXPECT_EQ(found[8], -2688.0F);  // 6 * 448
}

TEST(Fp4E4m3, DividesByTheScale) {
  // s = 2.8125 / 6 = 0.46875 exactly; 0.5859375 / s = 1.25, a tie that goes to 1. The float32 reciprocal of s is a
  // little too large, so a product by it lies above the tie and would give 1.5 s.
  constexpr float kScale = 0.46875F;
  constexpr float kTie = 0.5859375F;
  const float reciprocal = 1.0F / kScale;
  ASSERT_GT(kTie * reciprocal, 1.25F);
  auto row = block_with(16, 2.8125F);
  row[0] = kTie;
  row = round_trip(Format::fp4_e4m3, row);
  EXPECT_EQ(row[0], kScale);
  EXPECT_EQ(row[8], -2.8125F);
}

TEST(Fp8, SmallInputsUnderTheFloor) {
  auto row = block_with(32, 0x1p-22F * 0x1p-9F);  // the smallest code
  row[0] = 0x1p-22F * 0x1p-10F;                   // half of it, a tie that goes to zero
  row[1] = -0x1p-133F;                            // a subnormal bf16
  row = round_trip(Format::fp8, row);
  EXPECT_EQ(row[16], -0x1p-31F);
  EXPECT_EQ(row[0], 0.0F);
  EXPECT_EQ(row[1], 0.0F);
  EXPECT_TRUE(std::signbit(row[1]));
}

TEST(Fp4E8m0, SubnormalInputsKeepTheirCodes) {
  auto row = block_with(32, 0x1p-125F);  // scale 2^-126
  row[0] = 0x1p-127F;                    // half a unit of the scale
  row[1] = 0x1p-128F;                    // a quarter: a tie that goes to zero
  row[2] = -0x1p-133F;
  row = round_trip(Format::fp4_e8m0, row);
  EXPECT_EQ(row[16], -0x1p-125F);
  EXPECT_EQ(row[0], 0x1p-127F);
  EXPECT_EQ(row[1], 0.0F);
  EXPECT_EQ(row[2], 0.0F);
}

TEST(PowerOfTwoScales, AnInfinityMakesItsBlockNan) {
  // The scale is infinite: finite members become 0 * inf, the infinity inf / inf.
  for (const Format format : {Format::fp8, Format::fp4_e8m0}) {
    auto row = std::vector<float>(64, 1.0F);
    row[5] = -kInf;
    row = round_trip(format, row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(std::isnan(row[i]), i < 32) << i;
    }
  }
}

TEST(Fp4E4m3, AnInfinitySaturatesItsScale) {
  std::vector<float> row(16, 1.0F);
  row[2] = kInf;
  row[3] = -448.0F;
  row = round_trip(Format::fp4_e4m3, row);
  EXPECT_EQ(row[2], 2688.0F);
  EXPECT_EQ(row[3], -448.0F);
  EXPECT_EQ(row[0], 0.0F);
}

}  // namespace
}  // namespace attndiff::reference
