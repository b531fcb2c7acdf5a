#include "reference/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace attndiff::reference {
namespace {

/// The released model's rotary numbers.
ModelConfig released() {
  ModelConfig c;
  c.rope_dim = 64;
  c.rope_theta = 10000;
  c.compress_rope_theta = 160000;
  c.rope_factor = 16;
  c.orig_seq = 65536;
  c.beta_fast = 32;
  c.beta_slow = 1;
  return c;
}

double plain_frequency(double theta, std::size_t k, double rope_dim) {
  return std::exp(-2.0 * static_cast<double>(k) / rope_dim * std::log(theta));
}

constexpr double kFewRoundings = 1e-6;  // relative; an exponent rounded to float32 moves theta^e by up to 7e-7

TEST(RotaryFrequencies, OfAWindowOnlyLayerArePlain) {
  const auto f = rotary_frequencies(released(), 0);
  ASSERT_EQ(f.size(), 32U);
  EXPECT_EQ(f[0], 1.0F);
  EXPECT_FLOAT_EQ(f[16], 0.01F);  // 10000^-(32/64)
  for (std::size_t k = 0; k < f.size(); ++k) {
    const double exact = plain_frequency(10000, k, 64);
    EXPECT_NEAR(f[k], exact, kFewRoundings * exact) << k;
  }
}

TEST(RotaryFrequencies, WithoutAnOriginalLengthUseTheOtherBaseOnly) {
  ModelConfig c = released();
  c.orig_seq = 0;
  const auto f = rotary_frequencies(c, 2);
  EXPECT_FLOAT_EQ(f[16], 0.0025F);  // 160000^-(1/2)
  for (std::size_t k = 0; k < f.size(); ++k) {
    const double exact = plain_frequency(160000, k, 64);
    EXPECT_NEAR(f[k], exact, kFewRoundings * exact) << k;
  }
}

TEST(RotaryFrequencies, OfTheReleasedModelBlendBetweenDimensions15And25) {
  // corr(32) = 64 ln(65536 / 64 pi) / (2 ln 160000) = 15.45, corr(1) = 64 ln(65536 / 2 pi) / (2 ln 160000) = 24.71.
  const auto f = rotary_frequencies(released(), 1);
  ASSERT_EQ(f.size(), 32U);
  for (std::size_t k = 0; k < f.size(); ++k) {
    const double plain = plain_frequency(160000, k, 64);
    const double stretched = k <= 15 ? 0.0 : k >= 25 ? 1.0 : (static_cast<double>(k) - 15) / 10;
    const double exact = plain / 16 * stretched + plain * (1 - stretched);
    EXPECT_NEAR(f[k], exact, kFewRoundings * exact) << k;
  }
}

TEST(RotaryFrequencies, CorrectionsStayInsideTheDimensions) {
  // orig_seq 64: corr(32) is negative and becomes 0; corr(1) = 32 ln(64 / 2 pi) / (2 ln 160000) = 3.1, up to 4.
  ModelConfig c = released();
  c.orig_seq = 64;
  c.rope_dim = 32;
  const auto f = rotary_frequencies(c, 2);
  for (std::size_t k = 0; k < f.size(); ++k) {
    const double plain = plain_frequency(160000, k, 32);
    const double stretched = std::min(static_cast<double>(k) / 4, 1.0);
    const double exact = plain / 16 * stretched + plain * (1 - stretched);
    EXPECT_NEAR(f[k], exact, kFewRoundings * exact) << k;
  }
  // A slow rotation far beyond the length: ceil(corr) exceeds rope_dim - 1 = 7, which then ends the ramp.
  c.orig_seq = 1 << 20;
  c.rope_dim = 8;
  c.compress_rope_theta = 2;
  const auto late = rotary_frequencies(c, 2);
  for (std::size_t k = 0; k < late.size(); ++k) {
    EXPECT_NEAR(late[k], plain_frequency(2, k, 8), 1e-6) << "k below low = floor(corr(32)) = 49: plain";
  }
}

TEST(RotaryFrequencies, EqualCorrectionsMakeAStep) {
  // beta_fast == beta_slow == 1: low = floor(24.71) = 24, high = 25.
  ModelConfig c = released();
  c.beta_fast = 1;
  const auto f = rotary_frequencies(c, 1);
  EXPECT_NEAR(f[24], plain_frequency(160000, 24, 64), kFewRoundings * plain_frequency(160000, 24, 64));
  EXPECT_NEAR(f[25], plain_frequency(160000, 25, 64) / 16, kFewRoundings * plain_frequency(160000, 25, 64) / 16);
}

TEST(RotaryAngle, IsTheFloat32Product) {
  // At a million the float32 product is up to 1/32 off the real one, which a product in double would hide.
  const auto f = rotary_frequencies(released(), 0);
  constexpr std::int64_t kPosition = 1'048'575;
  double largest = 0;
  for (std::size_t k = 0; k < f.size(); ++k) {
    const double exact = static_cast<double>(kPosition) * static_cast<double>(f[k]);
    const float angle = rotary_angle(f[k], kPosition);
    EXPECT_EQ(angle, static_cast<float>(exact)) << k;
    largest = std::max(largest, std::fabs(static_cast<double>(angle) - exact));
  }
  EXPECT_GT(largest, 0.01);
  EXPECT_EQ(rotary_angle(0.5F, 0), 0.0F);
}

RotaryPhase phase_of(const std::vector<double>& angles) {
  RotaryPhase phase;
  for (const double angle : angles) {
    phase.cos.push_back(static_cast<float>(std::cos(angle)));
    phase.sin.push_back(static_cast<float>(std::sin(angle)));
  }
  return phase;
}

TEST(Rotate, TurnsAdjacentPairs) {
  // 90 degrees for the first pair, none for the second: halves of the row would mix entries 0 and 2.
  std::vector<float> tail{1, 2, 3, 4};
  rotate(tail, {.cos = {0, 1}, .sin = {1, 0}});
  EXPECT_EQ(tail, (std::vector<float>{-2, 1, 3, 4}));
  rotate_back(tail, {.cos = {0, 1}, .sin = {1, 0}});
  EXPECT_EQ(tail, (std::vector<float>{1, 2, 3, 4}));
}

TEST(Rotate, IsAComplexProduct) {
  // (3 + 4i) (0.5 + 0.25i) = 0.5 + 2.75i, by -sin (3 + 4i) (0.5 - 0.25i) = 2.5 + 1.25i; all exact.
  std::vector<float> tail{3, 4};
  rotate(tail, {.cos = {0.5F}, .sin = {0.25F}});
  EXPECT_EQ(tail, (std::vector<float>{0.5F, 2.75F}));
  tail = {3, 4};
  rotate_back(tail, {.cos = {0.5F}, .sin = {0.25F}});
  EXPECT_EQ(tail, (std::vector<float>{2.5F, 1.25F}));
}

TEST(Rotate, RoundsProductsBeforeTheirSum) {
  // a * c = 1 + 2^-11 + 2^-24 rounds to 1 + 2^-11 and minus itself gives 0; a fused product and sum would keep 2^-24.
  constexpr float kA = 1.0F + 0x1p-12F;
  std::vector<float> tail{kA, kA};
  rotate(tail, {.cos = {kA}, .sin = {kA}});
  EXPECT_EQ(tail[0], 0.0F);
  tail = {kA, kA};
  rotate_back(tail, {.cos = {kA}, .sin = {kA}});
  EXPECT_EQ(tail[1], 0.0F);
}

TEST(Rotate, BackUndoesItForAnyAngle) {
  std::mt19937 engine(5);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> angle(-1e6, 1e6);
  for (int i = 0; i < 100; ++i) {
    std::vector<float> tail{normal(engine), normal(engine), normal(engine), normal(engine)};
    const auto before = tail;
    const RotaryPhase phase = phase_of({angle(engine), angle(engine)});
    rotate(tail, phase);
    EXPECT_NE(tail, before);
    rotate_back(tail, phase);
    for (std::size_t d = 0; d < tail.size(); ++d) {
      EXPECT_NEAR(tail[d], before[d], 1e-5);
    }
  }
}

}  // namespace
}  // namespace attndiff::reference
