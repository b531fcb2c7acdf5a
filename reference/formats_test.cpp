#include "reference/formats.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace attndiff::reference {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr unsigned kLargestCode = 0x7e;

/// OCP E4M3 from its fields: bias 7, subnormals in steps of 2^-9.
double e4m3_field_value(unsigned code) {
  const int exponent = static_cast<int>((code >> 3U) & 0xfU);
  const int mantissa = static_cast<int>(code & 7U);
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80U) != 0 ? -magnitude : magnitude;
}

/// The nearest code by search over all 254 finite ones; of two equally near, the even one.
unsigned nearest_e4m3(double v) {
  unsigned best = 0;
  double distance = std::numeric_limits<double>::infinity();
  const unsigned sign = std::signbit(v) ? 0x80U : 0U;
  for (unsigned code = 0; code <= kLargestCode; ++code) {
    const double d = std::fabs(e4m3_field_value(sign | code) - v);
    if (d < distance || (d == distance && code % 2 == 0)) {
      best = sign | code;
      distance = d;
    }
  }
  return best;
}

TEST(E4m3, DecodesEveryCode) {
  for (unsigned code = 0; code <= 0xffU; ++code) {
    const float value = e4m3_decode(static_cast<std::uint8_t>(code));
    EXPECT_EQ(std::signbit(value), (code & 0x80U) != 0) << code;
    if ((code & 0x7fU) == 0x7fU) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(static_cast<double>(value), e4m3_field_value(code)) << code;
    }
  }
  EXPECT_EQ(e4m3_decode(kLargestCode), 448.0F);
}

TEST(E4m3, EveryCodeSurvivesARoundTrip) {
  for (unsigned code = 0; code <= 0xffU; ++code) {
    EXPECT_EQ(e4m3_encode(e4m3_decode(static_cast<std::uint8_t>(code))), code);
  }
}

TEST(E4m3, MidpointsGoToTheEvenCodeAndTheirNeighboursToTheNearer) {
  for (const unsigned sign : {0U, 0x80U}) {
    for (unsigned code = 0; code < kLargestCode; ++code) {
      const double lower = e4m3_field_value(sign | code);
      const double upper = e4m3_field_value(sign | (code + 1));
      const auto tie = static_cast<float>((lower + upper) / 2);
      const float inward = std::nextafter(tie, 0.0F);
      const float outward = std::nextafter(tie, static_cast<float>(upper));
      EXPECT_EQ(e4m3_encode(tie), sign | (code % 2 == 0 ? code : code + 1)) << tie;
      EXPECT_EQ(e4m3_encode(inward), sign | code) << inward;
      EXPECT_EQ(e4m3_encode(outward), sign | (code + 1)) << outward;
    }
  }
}

TEST(E4m3, EncodesLikeASearchOverAllCodes) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> exponent(-12, 9);
  std::uniform_real_distribution<float> mantissa(-2, 2);
  for (int i = 0; i < 20'000; ++i) {
    const float v = mantissa(engine) * std::exp2(exponent(engine));
    ASSERT_EQ(e4m3_encode(v), nearest_e4m3(v)) << v;
  }
}

TEST(E4m3, SaturatesAtItsLargestValue) {
  for (const float v : {448.0F, 449.0F, 464.0F, 465.0F, 480.0F, 1e30F, kInf}) {
    EXPECT_EQ(e4m3_encode(v), 0x7e) << v;
    EXPECT_EQ(e4m3_encode(-v), 0xfe) << v;
  }
  EXPECT_EQ(e4m3_encode(std::nextafter(448.0F, 0.0F)), 0x7e);
}

TEST(E4m3, KeepsNanAndTheSignOfZero) {
  EXPECT_EQ(e4m3_encode(kNan), 0x7f);
  EXPECT_EQ(e4m3_encode(-kNan), 0xff);
  EXPECT_EQ(e4m3_encode(0.0F), 0x00);
  EXPECT_EQ(e4m3_encode(-0.0F), 0x80);
  EXPECT_EQ(e4m3_encode(-1e-40F), 0x80);  // a subnormal float32
}

TEST(E2m1, TiesGoWhereTheSpecificationSays) {
  constexpr std::array<std::array<float, 2>, 7> kTies{
      {{0.25F, 0}, {0.75F, 1}, {1.25F, 1}, {1.75F, 2}, {2.5F, 2}, {3.5F, 4}, {5.0F, 4}}};
  for (const auto& [tie, value] : kTies) {
    EXPECT_EQ(e2m1_round(tie), value);
    EXPECT_EQ(e2m1_round(-tie), -value);
  }
}

TEST(E2m1, NeighboursOfATieGoToTheNearerValue) {
  constexpr std::array<float, 8> kValues{0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (std::size_t i = 0; i + 1 < kValues.size(); ++i) {
    const float tie = (kValues.at(i) + kValues.at(i + 1)) / 2;
    EXPECT_EQ(e2m1_round(std::nextafter(tie, 0.0F)), kValues.at(i));
    EXPECT_EQ(e2m1_round(std::nextafter(tie, kInf)), kValues.at(i + 1));
    EXPECT_EQ(e2m1_round(kValues.at(i)), kValues.at(i));
    EXPECT_EQ(e2m1_round(-kValues.at(i)), -kValues.at(i));
  }
}

TEST(E2m1, SaturatesKeepsTheSignOfZeroAndNan) {
  EXPECT_EQ(e2m1_round(6.0F), 6.0F);
  EXPECT_EQ(e2m1_round(1e9F), 6.0F);
  EXPECT_EQ(e2m1_round(-kInf), -6.0F);
  EXPECT_TRUE(std::signbit(e2m1_round(-0.0F)));
  EXPECT_TRUE(std::signbit(e2m1_round(-0.2F)));
  EXPECT_FALSE(std::signbit(e2m1_round(0.2F)));
  EXPECT_TRUE(std::isnan(e2m1_round(kNan)));
}

TEST(Pow2Ceil, OfEveryNormalPowerAndItsNeighbours) {
  for (int e = -126; e <= 127; ++e) {
    const float power = std::ldexp(1.0F, e);
    EXPECT_EQ(pow2ceil(power), power) << e;
    EXPECT_EQ(pow2ceil(std::nextafter(power, kInf)), e == 127 ? kInf : 2 * power) << e;
    if (e > -126) {
      EXPECT_EQ(pow2ceil(std::nextafter(power, 0.0F)), power) << e;
    }
  }
}

TEST(Pow2Ceil, OfSubnormalsIsTheSmallestNormalPower) {
  EXPECT_EQ(pow2ceil(std::nextafter(0x1p-126F, 0.0F)), 0x1p-126F);
  EXPECT_EQ(pow2ceil(std::numeric_limits<float>::denorm_min()), 0x1p-126F);
  EXPECT_EQ(pow2ceil(0.0F), 0.0F);
}

TEST(Pow2Ceil, LetsNonFiniteValuesThrough) {
  EXPECT_EQ(pow2ceil(kInf), kInf);
  EXPECT_TRUE(std::isnan(pow2ceil(kNan)));
}

TEST(E8m0, DecodesEveryCode) {
  for (unsigned code = 0; code < 255; ++code) {
    EXPECT_EQ(static_cast<double>(e8m0_decode(static_cast<std::uint8_t>(code))),
              std::exp2(static_cast<double>(code) - 127.0))
        << code;
  }
  EXPECT_TRUE(std::isnan(e8m0_decode(255)));
}

}  // namespace
}  // namespace attndiff::reference
