#include "reference/contract/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace attndiff {
namespace {

constexpr std::uint16_t kInfinity = 0x7f80;
constexpr std::uint16_t kLargest = 0x7f7f;

Bf16 code(unsigned bits) { return Bf16{static_cast<std::uint16_t>(bits)}; }

/// Value of a finite code from its fields; the code of infinity continues the scale to 2^128.
double field_value(unsigned bits) {
  const int exponent = static_cast<int>((bits >> 7U) & 0xffU);
  const double fraction = static_cast<double>(bits & 0x7fU) / 128.0;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -126) : std::ldexp(1.0 + fraction, exponent - 127);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

TEST(Bfloat16, EveryCodeSurvivesARoundTrip) {
  for (unsigned bits = 0; bits <= 0xffffU; ++bits) {
    const float value = to_float(code(bits));
    if ((bits & 0x7fffU) > kInfinity) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_EQ(to_bf16(value).bits, (bits & 0x8000U) | 0x7fc0U) << bits;
      continue;
    }
    ASSERT_EQ(to_bf16(value).bits, bits);
    if ((bits & 0x7fffU) < kInfinity) {
      ASSERT_EQ(static_cast<double>(value), field_value(bits)) << bits;
    }
  }
}

TEST(Bfloat16, RoundsToTheNearestCodeAndTiesToTheEvenOne) {
  for (const unsigned sign : {0U, 0x8000U}) {
    for (unsigned lower = 0; lower <= kLargest; ++lower) {
      const unsigned upper = lower + 1;  // the infinity after the largest code: overflow rounds like any other step
      const auto tie = static_cast<float>((field_value(sign | lower) + field_value(sign | upper)) / 2);
      const unsigned even = lower % 2 == 0 ? lower : upper;
      const float outward = std::copysign(std::numeric_limits<float>::infinity(), tie);
      ASSERT_EQ(to_bf16(tie).bits, sign | even) << lower;
      ASSERT_EQ(to_bf16(std::nextafter(tie, 0.0F)).bits, sign | lower) << lower;
      ASSERT_EQ(to_bf16(std::nextafter(tie, outward)).bits, sign | upper) << lower;
    }
  }
}

TEST(Bfloat16, OverflowAndInfinityGiveInfinity) {
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, kInfinity);
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
}

TEST(Bfloat16, NanBecomesTheQuietNanWithItsSign) {
  // 0x7f800001 has its payload in the half that is cut off: it must not become an infinity.
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x7f800001U)).bits, 0x7fc0);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0xffffffffU)).bits, 0xffc0);
}

TEST(Bfloat16, EqualityIsThatOfBits) {
  EXPECT_NE(to_bf16(0.0F), to_bf16(-0.0F));
  EXPECT_EQ(Bf16{0x7fc0}, Bf16{0x7fc0});
}

TEST(Bfloat16, RoundedValueStaysInFloat32) {
  EXPECT_EQ(round_bf16(1.0F + 0x1p-8F), 1.0F);            // tie, down to the even code
  EXPECT_EQ(round_bf16(1.0F + 0x3p-8F), 1.0F + 0x1p-6F);  // tie, up to the even code
}

TEST(Bf16Unit, IsTheDistanceToTheNextCode) {
  for (unsigned bits = 0; bits < kLargest; ++bits) {
    const double distance = field_value(bits + 1) - field_value(bits);
    ASSERT_EQ(bf16_unit(field_value(bits)), distance) << bits;
    ASSERT_EQ(bf16_unit(-field_value(bits)), distance) << bits;
  }
}

TEST(Bf16Unit, OfValuesBetweenCodes) {
  EXPECT_EQ(bf16_unit(1.9999), 0x1p-7);
  EXPECT_EQ(bf16_unit(2.0001), 0x1p-6);
  EXPECT_EQ(bf16_unit(1e-45), 0x1p-133);
}

}  // namespace
}  // namespace attndiff
