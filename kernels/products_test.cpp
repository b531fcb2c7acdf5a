#include <cmath>
#include <limits>

#include "kernels/compressor.h"
#include "kernels/gpu_test_support.h"
#include "kernels/index_scores.h"
#include "kernels/matvec.h"
#include "reference/compressor.h"
#include "reference/indexer.h"
#include "reference/quantize.h"

namespace attndiff::kernels {
namespace {

class Compressor : public GpuTest {};
class Matvec : public GpuTest {};
class IndexScores : public GpuTest {};

/// The largest error a float32 sum of `depth` products may have: gamma_depth of the absolute sum.
void expect_f32_products(const std::vector<float>& got, const std::vector<Bf16>& x, const std::vector<float>& w,
                         std::size_t depth) {
  const std::size_t outputs = w.size() / depth;
  for (std::size_t i = 0; i < got.size(); ++i) {
    double want = 0;
    double magnitude = 0;
    for (std::size_t k = 0; k < depth; ++k) {
      const double term = static_cast<double>(to_float(x[i / outputs * depth + k])) * w[i % outputs * depth + k];
      want += term;
      magnitude += std::fabs(term);
    }
    // Far below what TF32 inputs (2^-11 relative a product) would show.
    ASSERT_NEAR(got[i], want, magnitude * 0x1p-20) << i;
  }
}

TEST_F(Compressor, ProductsAreFloat32) {
  struct Case {
    std::int64_t tokens, dim, width;
  };
  for (const Case& c : {Case{1, 160, 96}, Case{1, 63, 33}, Case{5, 64, 32}, Case{70, 41, 130}}) {
    const auto x = random_bf16(static_cast<std::size_t>(c.tokens * c.dim), 1);
    const auto wkv = random_floats(static_cast<std::size_t>(c.width * c.dim), 2);
    const auto wgate = random_floats(wkv.size(), 3);
    const OnDevice<Bf16> x_device(x);
    const OnDevice<float> wkv_device(wkv);
    const OnDevice<float> wgate_device(wgate);
    const OnDevice<float> k(static_cast<std::size_t>(c.tokens * c.width), NAN);
    const OnDevice<float> g(static_cast<std::size_t>(c.tokens * c.width), NAN);
    const CompressorProductArgs args{x_device.get(), wkv_device.get(), wgate_device.get(), k.get(), g.get(), c.tokens,
                                     c.dim,          c.width};
    launch_compressor_product_tiled(args, nullptr);
    expect_f32_products(k.host(), x, wkv, static_cast<std::size_t>(c.dim));
    expect_f32_products(g.host(), x, wgate, static_cast<std::size_t>(c.dim));
    if (c.tokens == 1 && c.dim % 8 == 0) {
      launch_compressor_product_token(args, nullptr);
      expect_f32_products(k.host(), x, wkv, static_cast<std::size_t>(c.dim));
      expect_f32_products(g.host(), x, wgate, static_cast<std::size_t>(c.dim));
    }
  }
}

TEST_F(Compressor, PoolingFollowsTheReference) {
  constexpr std::size_t kWidth = 96;
  constexpr std::size_t kGroups = 5;
  for (const std::size_t ratio : {2U, 4U, 7U}) {
    const auto k = random_floats(kGroups * ratio * kWidth, 1);
    const auto g = random_floats(k.size(), 2, 5.0F);
    const OnDevice<float> k_device(k);
    const OnDevice<float> g_device(g);
    const OnDevice<Bf16> pooled(kGroups * kWidth, kUnwritten);
    launch_pool({k_device.get(), g_device.get(), pooled.get(), kGroups, static_cast<std::int64_t>(ratio), kWidth},
                nullptr);
    std::vector<double> want;
    for (std::size_t i = 0; i < kGroups; ++i) {
      std::vector<float> row(kWidth);
      const std::size_t size = ratio * kWidth;
      reference::pool_group({k.data() + i * size, size}, {g.data() + i * size, size}, static_cast<std::int64_t>(ratio),
                            row);
      want.insert(want.end(), row.begin(), row.end());
    }
    expect_close(pooled.host(), want, 0.51, 1e-6);
  }
}

TEST_F(Compressor, PartialWriteTakesTheSlotFromDeviceMemory) {
  constexpr std::int64_t kWidth = 33;
  constexpr std::int64_t kRatio = 4;
  const OnDevice<float> k(std::vector<float>(kWidth, 2.0F));
  const OnDevice<float> g(std::vector<float>(kWidth, 3.0F));
  const OnDevice<float> state(2 * kRatio * kWidth, 1.0F);
  const OnDevice<StepScalars> step(1);
  launch_set_step(step.get(), {.partial_slot = 2}, nullptr);
  launch_partial_write({k.get(), g.get(), state.get(), step.get(), kRatio, kWidth}, nullptr);
  const auto got = state.host();
  for (std::int64_t i = 0; i < 2 * kRatio * kWidth; ++i) {
    const std::int64_t row = i / kWidth;
    EXPECT_EQ(got[static_cast<std::size_t>(i)], row == 2 ? 2.0F : row == kRatio + 2 ? 3.0F : 1.0F) << i;
  }
}

TEST_F(Matvec, BatchesAndUnroundedValues) {
  struct Case {
    std::int64_t batch, outputs, depth;
  };
  for (const Case& c : {Case{1, 5, 8}, Case{2, 40, 288}, Case{1, 33, 1280}}) {
    const auto x = random_bf16(static_cast<std::size_t>(c.batch * c.depth), 1);
    const auto w = random_bf16(static_cast<std::size_t>(c.batch * c.outputs * c.depth), 2);
    const OnDevice<Bf16> x_device(x);
    const OnDevice<Bf16> w_device(w);
    const auto count = static_cast<std::size_t>(c.batch * c.outputs);
    const OnDevice<Bf16> y(count, kUnwritten);
    const OnDevice<float> y_f32(count, NAN);
    MatvecArgs args{x_device.get(), w_device.get(), y.get(), nullptr, c.outputs, c.depth, c.batch};
    launch_matvec(args, nullptr);
    args.y_f32 = y_f32.get();
    launch_matvec(args, nullptr);
    const auto f32 = y_f32.host();
    EXPECT_EQ(y.host(), rounded(f32));
    for (std::size_t i = 0; i < count; ++i) {
      double want = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < c.depth; ++k) {
        const auto b = static_cast<std::int64_t>(i) / c.outputs;
        const double term = static_cast<double>(to_float(x[static_cast<std::size_t>(b * c.depth + k)])) *
                            to_float(w[i * static_cast<std::size_t>(c.depth) + static_cast<std::size_t>(k)]);
        want += term;
        magnitude += std::fabs(term);
      }
      ASSERT_NEAR(f32[i], want, magnitude * 0x1p-20) << i;
    }
  }
}

TEST_F(IndexScores, ExactOnTheQuantisersGrid) {
  struct Case {
    std::int64_t tokens, length, heads, width;
  };
  for (const Case& c : {Case{1, 1, 3, 64}, Case{3, 70, 4, 32}, Case{2, 129, 32, 128}, Case{5, 64, 17, 96}}) {
    auto q = random_floats(static_cast<std::size_t>(c.tokens * c.heads * c.width), 1);
    auto keys = random_floats(static_cast<std::size_t>(c.length * c.width), 2);
    reference::fp4_e8m0_round_trip(q);
    reference::fp4_e8m0_round_trip(keys);
    const auto w = random_bf16(static_cast<std::size_t>(c.tokens * c.heads), 3);
    const OnDevice<Bf16> q_device(rounded(q));
    const OnDevice<Bf16> keys_device(rounded(keys));
    const OnDevice<Bf16> w_device(w);
    const OnDevice<Bf16> scores(static_cast<std::size_t>(c.tokens * c.length), kUnwritten);
    prepare_index_scores(c.heads, c.width);
    launch_index_scores(
        {q_device.get(), keys_device.get(), w_device.get(), scores.get(), c.tokens, c.length, c.heads, c.width},
        nullptr);
    const auto got = scores.host();
    const auto weights = widened(w);
    for (std::int64_t t = 0; t < c.tokens; ++t) {
      std::vector<float> want(static_cast<std::size_t>(c.length));
      const auto q_size = static_cast<std::size_t>(c.heads * c.width);
      reference::index_scores({.q = {q.data() + static_cast<std::size_t>(t) * q_size, q_size},
                               .keys = keys,
                               .w = {weights.data() + t * c.heads, static_cast<std::size_t>(c.heads)},
                               .out = want});
      for (std::int64_t p = 0; p < c.length; ++p) {
        const float score = to_float(got[static_cast<std::size_t>(t * c.length + p)]);
        // Dots are exact; the sum over heads may be ordered otherwise, which moves at most the last rounding.
        const double due = want[static_cast<std::size_t>(p)];
        ASSERT_NEAR(score, due, 0.5 * bf16_unit(due) + 1e-5) << t << ", " << p;
      }
    }
  }
}

TEST_F(IndexScores, NaNPassesTheRectifier) {
  std::vector<float> q(16 * 32, 1.0F);
  q[0] = NAN;
  const OnDevice<Bf16> q_device(rounded(q));
  const OnDevice<Bf16> keys(random_bf16(2 * 32, 4));
  const OnDevice<Bf16> w(16, to_bf16(1.0F));
  const OnDevice<Bf16> scores(2, Bf16{});
  launch_index_scores({q_device.get(), keys.get(), w.get(), scores.get(), 1, 2, 16, 32}, nullptr);
  for (const Bf16 s : scores.host()) {
    EXPECT_TRUE(std::isnan(to_float(s)));
  }
}

}  // namespace
}  // namespace attndiff::kernels
