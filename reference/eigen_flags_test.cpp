#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <vector>

namespace attndiff {
namespace {

/// Eigen computes some elements of an array by packets and the others one by one, as the array lies in memory. Its fast
/// square root of a packet, which EIGEN_FAST_MATH=0 turns off, is not the rounded one.
TEST(EigenFlags, RootsAreRoundedWhereverTheyLie) {
  constexpr std::size_t kCount = 61;
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    values[i] = std::ldexp(1.0F + 0.7F * static_cast<float>(i) / kCount, i % 5 == 0 ? -130 : static_cast<int>(i) - 30);
  }
  std::vector<float> roots(kCount + 8);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    Eigen::Map<Eigen::ArrayXf>(roots.data() + offset, kCount) =
        Eigen::Map<const Eigen::ArrayXf>(values.data(), kCount).sqrt();
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(roots[offset + i], std::sqrt(values[i])) << i << " at " << offset;
    }
  }
}

}  // namespace
}  // namespace attndiff
