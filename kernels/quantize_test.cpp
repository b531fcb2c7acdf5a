#include "kernels/quantize.h"

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/gpu_test_support.h"
#include "reference/quantize.h"

namespace attndiff::kernels {
namespace {

class Quantize : public GpuTest {};

std::vector<Bf16> on_host(std::vector<float> values, RoundTrip kind) {
  switch (kind) {
    case RoundTrip::fp8:
      reference::fp8_round_trip(values);
      break;
    case RoundTrip::fp4_e8m0:
      reference::fp4_e8m0_round_trip(values);
      break;
    case RoundTrip::fp4_e4m3:
      reference::fp4_e4m3_round_trip(values);
      break;
  }
  return rounded(values);
}

void expect_equal(const std::vector<Bf16>& values, RoundTrip kind) {
  const OnDevice<Bf16> from(values);
  const OnDevice<Bf16> to(values.size(), kUnwritten);
  launch_quantize({.from = from.get(), .to = to.get(), .count = static_cast<std::int64_t>(values.size()), .kind = kind},
                  nullptr);
  const auto got = to.host();
  const auto want = on_host(widened(values), kind);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(to_float(want[i]))) {
      ASSERT_TRUE(std::isnan(to_float(got[i]))) << i;
    } else {
      ASSERT_EQ(got[i].bits, want[i].bits) << "element " << i << ", input " << to_float(values[i]);
    }
  }
}

constexpr RoundTrip kKinds[] = {RoundTrip::fp8, RoundTrip::fp4_e8m0, RoundTrip::fp4_e4m3};

TEST_F(Quantize, EveryBf16PatternInABlockOfItsOwnSize) {
  // Each pattern stands beside smaller random values, so that it sets the scale of its block.
  for (const RoundTrip kind : kKinds) {
    std::vector<Bf16> values;
    const auto noise = random_floats(31, 7);
    for (unsigned bits = 0; bits < 0x10000U; bits += 3) {
      const Bf16 v{static_cast<std::uint16_t>(bits)};
      values.push_back(v);
      for (const float n : noise) {
        values.push_back(to_bf16(std::isfinite(to_float(v)) ? to_float(v) * n * 0.3F : n));
      }
    }
    expect_equal(values, kind);
  }
}

TEST_F(Quantize, TiesSmallValuesAndSignedZeros) {
  std::vector<Bf16> values;
  for (const float base : {6.0F, 448.0F, 1e-4F, 1e-30F, 3e38F, 0.0F}) {
    for (int i = 0; i < 32; ++i) {
      values.push_back(to_bf16((i % 2 == 0 ? 1.0F : -1.0F) * base * static_cast<float>(i) / 31.0F));
    }
    for (const float tie : {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F, 6.0F}) {
      values.insert(values.end(), {to_bf16(tie), to_bf16(-tie), to_bf16(tie * base), to_bf16(-0.0F)});
    }
  }
  for (const RoundTrip kind : kKinds) {
    expect_equal(values, kind);
  }
}

TEST_F(Quantize, NaNAndInfinityBehaveAsInTheReference) {
  std::vector<Bf16> values = random_bf16(256, 3);
  values[5] = to_bf16(std::numeric_limits<float>::quiet_NaN());
  values[70] = to_bf16(std::numeric_limits<float>::infinity());
  values[130] = to_bf16(-std::numeric_limits<float>::infinity());
  for (const RoundTrip kind : kKinds) {
    expect_equal(values, kind);
  }
}

TEST_F(Quantize, InPlaceAndShortTails) {
  for (const std::size_t count : {32U, 96U, 288U, 544U}) {
    const auto values = random_bf16(count, static_cast<unsigned>(count), 20.0F);
    const OnDevice<Bf16> row(values);
    launch_quantize({.from = row.get(), .to = row.get(), .count = static_cast<std::int64_t>(count)}, nullptr);
    EXPECT_EQ(row.host(), on_host(widened(values), RoundTrip::fp8));
  }
}

}  // namespace
}  // namespace attndiff::kernels
