#include <chrono>
#include <cmath>

#include "kernels/gpu_test_support.h"
#include "kernels/launch.h"
#include "kernels/mutants/attention.h"
#include "kernels/mutants/index_scores.h"
#include "kernels/mutants/products.h"
#include "kernels/mutants/quantize.h"
#include "kernels/mutants/rotary.h"
#include "kernels/mutants/stray.h"
#include "kernels/mutants/window.h"

/// A variant at its defaults computes what the implementation does, so that a fault is nothing but its own change; and
/// each change moves something.
namespace attndiff::kernels::mutants {
namespace {

class Variant : public GpuTest {};

bool same_bits(const std::vector<Bf16>& a, const std::vector<Bf16>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](Bf16 x, Bf16 y) { return x.bits == y.bits; });
}

std::vector<double> in_double(const std::vector<Bf16>& values) {
  std::vector<double> out;
  for (const Bf16 v : values) {
    out.push_back(to_float(v));
  }
  return out;
}

/// 6 queries of 2 heads over 40 columns, a fifth of them absent and the first 8 of query 0 too.
struct Attention {
  static constexpr std::int64_t kTokens = 6, kHeads = 2, kWidth = 96, kColumns = 40, kWindow = 10, kRows = 30;
  OnDevice<Bf16> q{random_bf16(kTokens * kHeads * kWidth, 1)};
  OnDevice<Bf16> window{random_bf16(kWindow * kWidth, 2)};
  OnDevice<Bf16> compressed{random_bf16((kRows - kWindow) * kWidth, 3)};
  OnDevice<std::int32_t> idx{entries()};
  OnDevice<float> sink{random_floats(kHeads, 4)};
  OnDevice<Bf16> o{kTokens * kHeads * kWidth, kUnwritten};
  OnDevice<float> lse{kTokens * kHeads, NAN};

  static std::vector<std::int32_t> entries() {
    std::vector<std::int32_t> values;
    for (std::int32_t i = 0; i < kTokens * kColumns; ++i) {
      values.push_back(i < 8 || i % 5 == 0 ? -1 : (i * 7) % kRows);
    }
    return values;
  }
  [[nodiscard]] SparseAttentionArgs args() const {
    return {.q = q.get(),
            .window_rows = window.get(),
            .compressed_rows = compressed.get(),
            .idx = idx.get(),
            .sink = sink.get(),
            .o = o.get(),
            .lse = lse.get(),
            .tokens = kTokens,
            .heads = kHeads,
            .head_dim = kWidth,
            .columns = kColumns,
            .window_count = kWindow,
            .scale = 0.1F};
  }
};

std::vector<double> production_o(std::vector<float>& lse) {
  const Attention a;
  prepare_sparse_attention(Attention::kWidth, Attention::kColumns);
  launch_sparse_attention(a.args(), AttentionForm::plain, nullptr);
  lse = a.lse.host();
  return in_double(a.o.host());
}

TEST_F(Variant, AttentionAtItsDefaultsInTilesAndSplitsIsTheImplementation) {
  std::vector<float> lse;
  const auto want = production_o(lse);
  for (const AttentionVariant& variant : {AttentionVariant{}, AttentionVariant{.tile = 4},
                                          AttentionVariant{.splits = 4}, AttentionVariant{.tile = 7, .splits = 3}}) {
    const Attention a;
    launch_attention_variant(a.args(), variant, nullptr);
    expect_close(a.o.host(), want, 1.0, 1e-5);
    const auto got = a.lse.host();
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], lse[i], 1e-5F);
    }
  }
}

TEST_F(Variant, AttentionFaultsShowWhereTheyAct) {
  std::vector<float> lse;
  production_o(lse);
  const auto lse_of = [](const AttentionVariant& variant) {
    const Attention a;
    launch_attention_variant(a.args(), variant, nullptr);
    return a.lse.host();
  };
  EXPECT_GT(std::fabs(lse_of({.sink_counts = false})[0] - lse[0]), 1e-3F);
  EXPECT_GT(std::fabs(lse_of({.absent_score = 0})[0] - lse[0]), 1e-3F);
  EXPECT_TRUE(std::isnan(lse_of({.tile = 4, .guarded = false})[0]));

  const Attention poisoned;
  launch_attention_variant(poisoned.args(), {.reads_absent = true}, nullptr);
  EXPECT_TRUE(std::isnan(to_float(poisoned.o.host()[0])));
  EXPECT_FALSE(std::isnan(poisoned.lse.host()[0]));

  const Attention unwritten;
  launch_attention_variant(unwritten.args(), {.heads_unwritten = 1}, nullptr);
  const auto o = unwritten.o.host();
  EXPECT_NE(o[0].bits, kUnwritten.bits);
  EXPECT_EQ(o[Attention::kWidth].bits, kUnwritten.bits);
}

std::vector<Bf16> quantised(RoundTrip kind, const QuantizeVariant* variant) {
  const OnDevice<Bf16> from(random_bf16(4096, 7, 3.0F));
  const OnDevice<Bf16> to(4096, kUnwritten);
  const QuantizeArgs args{.from = from.get(), .to = to.get(), .count = 4096, .kind = kind};
  if (variant != nullptr) {
    launch_quantize_variant(args, *variant, nullptr);
  } else {
    launch_quantize(args, nullptr);
  }
  return to.host();
}

TEST_F(Variant, QuantiserAtItsDefaultsIsTheImplementation) {
  constexpr QuantizeVariant kRight;
  for (const RoundTrip kind : {RoundTrip::fp8, RoundTrip::fp4_e8m0, RoundTrip::fp4_e4m3}) {
    EXPECT_TRUE(same_bits(quantised(kind, &kRight), quantised(kind, nullptr)));
  }
}

TEST_F(Variant, QuantiserFaultsMoveCodes) {
  constexpr QuantizeVariant kFloor{.scale_by_floor = true};
  constexpr QuantizeVariant kAway{.ties_away = true};
  constexpr QuantizeVariant kLow{.e4m3_limit = 256};
  constexpr QuantizeVariant kReciprocal{.reciprocal = true};
  EXPECT_FALSE(same_bits(quantised(RoundTrip::fp4_e8m0, &kFloor), quantised(RoundTrip::fp4_e8m0, nullptr)));
  EXPECT_FALSE(same_bits(quantised(RoundTrip::fp4_e8m0, &kAway), quantised(RoundTrip::fp4_e8m0, nullptr)));
  EXPECT_FALSE(same_bits(quantised(RoundTrip::fp8, &kLow), quantised(RoundTrip::fp8, nullptr)));
  // A power-of-two scale has an exact reciprocal.
  EXPECT_TRUE(same_bits(quantised(RoundTrip::fp8, &kReciprocal), quantised(RoundTrip::fp8, nullptr)));
}

/// 12 rows of 3 heads at positions from 300 on, two apart.
std::vector<Bf16> turned(const RotaryVariant* variant) {
  constexpr std::int64_t kRows = 12, kWidth = 48, kRope = 32, kPositions = 512;
  const OnDevice<Bf16> from(random_bf16(kRows * kWidth, 5));
  const OnDevice<Bf16> to(kRows * kWidth, kUnwritten);
  const OnDevice<float> cos(random_floats(kPositions * kRope / 2, 6));
  const OnDevice<float> sin(random_floats(kPositions * kRope / 2, 7));
  const OnDevice<std::int64_t> first(std::vector<std::int64_t>{301});
  const RotaryArgs args{.from = from.get(),
                        .to = to.get(),
                        .cos = cos.get(),
                        .sin = sin.get(),
                        .first = first.get(),
                        .stride = 2,
                        .rows = kRows,
                        .rows_per_position = 3,
                        .width = kWidth,
                        .rope_dim = kRope,
                        .direction = RotaryDirection::inverse};
  if (variant != nullptr) {
    launch_rotary_variant(args, *variant, nullptr);
  } else {
    launch_rotary(args, nullptr);
  }
  return to.host();
}

TEST_F(Variant, RotationAtItsDefaultsIsTheImplementationAndItsFaultsAreNot) {
  constexpr RotaryVariant kRight;
  EXPECT_TRUE(same_bits(turned(&kRight), turned(nullptr)));
  for (const RotaryVariant& fault : {RotaryVariant{.half_split = true}, RotaryVariant{.bf16_position = true},
                                     RotaryVariant{.by_group_index = true}}) {
    EXPECT_FALSE(same_bits(turned(&fault), turned(nullptr)));
  }
}

/// A prefill of 11 tokens, or a decode step at position 11, with a window of 8 and 3 picks.
std::vector<std::int32_t> listed(bool prefill, const IndexBuildVariant* variant) {
  const std::int64_t tokens = prefill ? 11 : 1;
  std::vector<std::int32_t> picks;
  for (std::int32_t i = 0; i < 3 * tokens; ++i) {
    picks.push_back(i % 4 == 0 ? -1 : i);
  }
  const OnDevice<std::int32_t> selection(picks);
  const OnDevice<std::int32_t> idx(static_cast<std::size_t>(tokens * 11), -2);
  const OnDevice<StepScalars> step(
      std::vector<StepScalars>{prefill ? StepScalars{} : StepScalars{.position = 11, .ring_slot = 3}});
  const IndexBuildArgs args{.selection = selection.get(),
                            .idx = idx.get(),
                            .step = step.get(),
                            .tokens = tokens,
                            .window = 8,
                            .window_columns = 8,
                            .selection_columns = 3,
                            .offset = prefill ? tokens : 8,
                            .prefill = prefill};
  if (variant != nullptr) {
    launch_index_build_variant(args, *variant, nullptr);
  } else {
    launch_index_build(args, nullptr);
  }
  return idx.host();
}

TEST_F(Variant, IndicesAtTheirDefaultsAreTheImplementationsAndTheirFaultsAreNot) {
  constexpr IndexBuildVariant kRight;
  constexpr IndexBuildVariant kWide{.window_too_wide = true};
  constexpr IndexBuildVariant kOffset{.offsets_absent = true};
  EXPECT_EQ(listed(true, &kRight), listed(true, nullptr));
  EXPECT_EQ(listed(false, &kRight), listed(false, nullptr));
  EXPECT_NE(listed(true, &kWide), listed(true, nullptr));
  EXPECT_NE(listed(false, &kOffset), listed(false, nullptr));
}

TEST_F(Variant, RingRowsGoOneSlotTooFarOnceTheRingHasWrapped) {
  constexpr std::int64_t kWindow = 4, kWidth = 8, kPosition = 6;
  const OnDevice<Bf16> kv(random_bf16(kWidth, 3));
  const OnDevice<Bf16> ring(kWindow * kWidth, kUnwritten);
  const OnDevice<StepScalars> step(std::vector<StepScalars>{{.position = kPosition, .ring_slot = kPosition % kWindow}});
  launch_ring_write_past_the_wrap(
      {.kv = kv.get(), .ring = ring.get(), .step = step.get(), .tokens = 1, .window = kWindow, .width = kWidth},
      nullptr);
  const auto rows = ring.host();
  EXPECT_EQ(rows[2 * kWidth].bits, kUnwritten.bits);
  EXPECT_EQ(rows[3 * kWidth].bits, kv.host()[0].bits);
}

std::vector<Bf16> scored(const IndexScoreVariant* variant) {
  constexpr std::int64_t kTokens = 5, kLength = 70, kHeads = 3, kWidth = 64;
  // Small integers: every dot and sum is exact in any order.
  const auto grid = [](std::size_t count, unsigned seed) {
    std::vector<float> values = random_floats(count, seed);
    for (float& v : values) {
      v = std::round(2 * v);
    }
    return rounded(values);
  };
  const OnDevice<Bf16> q(grid(kTokens * kHeads * kWidth, 1));
  const OnDevice<Bf16> keys(grid(kLength * kWidth, 2));
  const OnDevice<Bf16> w(grid(kTokens * kHeads, 3));
  const OnDevice<Bf16> scores(kTokens * kLength, kUnwritten);
  const IndexScoreArgs args{.q = q.get(),
                            .keys = keys.get(),
                            .w = w.get(),
                            .scores = scores.get(),
                            .tokens = kTokens,
                            .length = kLength,
                            .heads = kHeads,
                            .head_dim = kWidth};
  if (variant != nullptr) {
    launch_index_score_variant(args, *variant, nullptr);
  } else {
    prepare_index_scores(kHeads, kWidth);
    launch_index_scores(args, nullptr);
  }
  return scores.host();
}

TEST_F(Variant, IndexScoresAtTheirDefaultsAreTheImplementationsAndTheirFaultsAreNot) {
  constexpr IndexScoreVariant kRight;
  constexpr IndexScoreVariant kUnrectified{.rectified = false};
  constexpr IndexScoreVariant kWeighted{.weighted_first = true};
  EXPECT_EQ(in_double(scored(&kRight)), in_double(scored(nullptr)));
  EXPECT_NE(in_double(scored(&kUnrectified)), in_double(scored(nullptr)));
  EXPECT_NE(in_double(scored(&kWeighted)), in_double(scored(nullptr)));
}

std::vector<Bf16> multiplied(const MatvecVariant* variant) {
  constexpr std::int64_t kOutputs = 50, kDepth = 168, kBatch = 2;
  const OnDevice<Bf16> x(random_bf16(kBatch * kDepth, 1));
  const OnDevice<Bf16> w(random_bf16(kBatch * kOutputs * kDepth, 2));
  const OnDevice<Bf16> y(kBatch * kOutputs, kUnwritten);
  const MatvecArgs args{.x = x.get(),
                        .w = w.get(),
                        .y = y.get(),
                        .y_f32 = nullptr,
                        .outputs = kOutputs,
                        .depth = kDepth,
                        .batch = kBatch};
  if (variant != nullptr) {
    launch_matvec_variant(args, *variant, nullptr);
  } else {
    launch_matvec(args, nullptr);
  }
  return y.host();
}

TEST_F(Variant, SplitProductsDifferByRoundingOnlyWherePartialSumsAreFloat32) {
  constexpr MatvecVariant kRight;
  constexpr MatvecVariant kRounded{.bf16_partials = true};
  const auto want = in_double(multiplied(nullptr));
  expect_close(multiplied(&kRight), want, 1.0, 1e-4);
  EXPECT_NE(in_double(multiplied(&kRounded)), want);
}

TEST_F(Variant, ScaledProductRoundsOnce) {
  constexpr std::int64_t kTokens = 3, kOutputs = 5, kDepth = 40;
  const auto x = random_bf16(kTokens * kDepth, 1);
  const auto w = random_bf16(kOutputs * kDepth, 2);
  const OnDevice<Bf16> xs(x);
  const OnDevice<Bf16> ws(w);
  const OnDevice<Bf16> y(kTokens * kOutputs, kUnwritten);
  launch_scaled_product({.x = xs.get(),
                         .w = ws.get(),
                         .y = y.get(),
                         .tokens = kTokens,
                         .outputs = kOutputs,
                         .depth = kDepth,
                         .scale = 0.3F},
                        nullptr);
  std::vector<double> want;
  for (std::int64_t i = 0; i < kTokens * kOutputs; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < kDepth; ++k) {
      sum += static_cast<double>(to_float(x[static_cast<std::size_t>(i / kOutputs * kDepth + k)])) *
             to_float(w[static_cast<std::size_t>(i % kOutputs * kDepth + k)]);
    }
    want.push_back(sum * static_cast<double>(0.3F));
  }
  expect_close(y.host(), want, 0.5, 1e-5);
}

TEST_F(Variant, TheDelayHoldsTheStreamUp) {
  constexpr std::chrono::milliseconds kDelay(20);
  const auto start = std::chrono::steady_clock::now();
  launch_delay(std::chrono::nanoseconds(kDelay).count(), nullptr);
  ATTNDIFF_CUDA(cudaStreamSynchronize(nullptr));
  EXPECT_GE(std::chrono::steady_clock::now() - start, kDelay / 2);
}

}  // namespace
}  // namespace attndiff::kernels::mutants
