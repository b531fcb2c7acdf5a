#include "reference/rms_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace attndiff::reference {
namespace {

TEST(RmsNorm, OfValuesWhoseRootIsExact) {
  // mean of squares (9 + 16 + 0 + 0) / 4 = 6.25, plus eps 0.0: root 2.5, its inverse 0.4 in float32.
  const std::vector<float> x{3, 4, 0, 0};
  const std::vector<float> w{1, 2, 3, 4};
  std::vector<float> out(4);
  rms_norm(x, w, 0.0F, out);
  EXPECT_EQ(out, (std::vector<float>{3.0F * 0.4F, 2.0F * (4.0F * 0.4F), 0, 0}));
}

TEST(RmsNorm, EpsIsAddedToTheMean) {
  // mean 1, eps 3: the inverse root is exactly 1/2.
  const std::vector<float> x{1, -1};
  const std::vector<float> w{1, 1};
  std::vector<float> out(2);
  rms_norm(x, w, 3.0F, out);
  EXPECT_EQ(out, (std::vector<float>{0.5F, -0.5F}));
}

TEST(RmsNorm, OfAZeroRowIsZeroUnderASmallEps) {
  const std::vector<float> x(8, 0.0F);
  const std::vector<float> w(8, 5.0F);
  std::vector<float> out(8, 1.0F);
  rms_norm(x, w, 1e-20F, out);
  EXPECT_EQ(out, x);
}

TEST(RmsNorm, MultipliesByTheWeightLast) {
  // w * (x * r): here (x * w) * r would overflow in between.
  const std::vector<float> x{1e20F, 1e20F};
  const std::vector<float> w{1e20F, 1};
  std::vector<float> out(2);
  // mean 1e40 is beyond float32, so the inverse root is zero: a product of infinities must not appear.
  rms_norm(x, w, 0.0F, out);
  EXPECT_EQ(out, (std::vector<float>{0, 0}));
}

TEST(RmsNorm, AgreesWithDoubleToThreeRoundings) {
  std::mt19937 engine(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(5120);
  std::vector<float> w(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = normal(engine);
    w[i] = normal(engine);
  }
  std::vector<float> out(x.size());
  rms_norm(x, w, 1e-6F, out);
  double sum = 0;
  for (const float v : x) {
    sum += static_cast<double>(v) * static_cast<double>(v);
  }
  const double inverse = 1 / std::sqrt(sum / 5120.0 + 1e-6);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = static_cast<double>(w[i]) * static_cast<double>(x[i]) * inverse;
    ASSERT_NEAR(out[i], exact, 5 * 0x1p-24 * std::fabs(exact)) << i;
  }
}

TEST(RmsNorm, ANanReachesTheWholeRow) {
  std::vector<float> x(4, 1.0F);
  x[2] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> w(4, 1.0F);
  std::vector<float> out(4);
  rms_norm(x, w, 1e-20F, out);
  for (const float v : out) {
    EXPECT_TRUE(std::isnan(v));
  }
}

}  // namespace
}  // namespace attndiff::reference
