#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/gpu_test_support.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "kernels/step_scalars.h"
#include "kernels/window.h"
#include "reference/rms_norm.h"
#include "reference/rotary.h"
#include "reference/window.h"

namespace attndiff::kernels {
namespace {

class RmsNorm : public GpuTest {};
class Rotary : public GpuTest {};
class Window : public GpuTest {};
class Elementwise : public GpuTest {};

std::vector<double> norm_on_host(const std::vector<float>& x, const std::vector<float>& w, float eps) {
  std::vector<double> want;
  for (std::size_t row = 0; row < x.size(); row += w.size()) {
    double squares = 0;
    for (std::size_t d = 0; d < w.size(); ++d) {
      squares += static_cast<double>(x[row + d]) * x[row + d];
    }
    const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(w.size()) + eps);
    for (std::size_t d = 0; d < w.size(); ++d) {
      want.push_back(w[d] * (x[row + d] * inverse));
    }
  }
  return want;
}

TEST_F(RmsNorm, OddAndReleasedWidths) {
  constexpr float kEps = 1e-20F;
  for (const std::size_t width : {1U, 7U, 64U, 96U, 512U, 1280U}) {
    const std::size_t rows = 5;
    const auto x = random_bf16(rows * width, static_cast<unsigned>(width), 3.0F);
    const auto w = random_floats(width, 11);
    const OnDevice<Bf16> x_device(x);
    const OnDevice<float> x_f32(widened(x));
    const OnDevice<float> w_device(w);
    const OnDevice<Bf16> y(x.size(), kUnwritten);
    const auto want = norm_on_host(widened(x), w, kEps);
    const auto count = static_cast<std::int64_t>(width);
    launch_rms_norm(RmsNormArgs{x_device.get(), w_device.get(), y.get(), rows, count, kEps}, nullptr);
    const auto from_bf16 = y.host();
    expect_close(from_bf16, want, 0.51, 0);
    launch_rms_norm(RmsNormF32Args{x_f32.get(), w_device.get(), y.get(), rows, count, kEps}, nullptr);
    EXPECT_EQ(y.host(), from_bf16);
    launch_rms_norm(RmsNormArgs{x_device.get(), w_device.get(), x_device.get(), rows, count, kEps}, nullptr);
    EXPECT_EQ(x_device.host(), from_bf16);
  }
}

struct Tables {
  std::vector<float> cos;
  std::vector<float> sin;
};

Tables tables(std::int64_t positions, std::size_t pairs) {
  Tables t;
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::size_t k = 0; k < pairs; ++k) {
      const double angle = static_cast<float>(p) * std::pow(10000.0F, -static_cast<float>(k) / 8.0F);
      t.cos.push_back(static_cast<float>(std::cos(angle)));
      t.sin.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return t;
}

std::vector<Bf16> rotate_on_host(const std::vector<Bf16>& rows, std::size_t width, const Tables& t, std::size_t pairs,
                                 const std::vector<std::size_t>& positions, bool inverse) {
  auto out = rows;
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const auto at = static_cast<std::ptrdiff_t>(positions[row] * pairs);
    const auto end = at + static_cast<std::ptrdiff_t>(pairs);
    const reference::RotaryPhase phase{{t.cos.begin() + at, t.cos.begin() + end},
                                       {t.sin.begin() + at, t.sin.begin() + end}};
    std::vector<float> tail;
    const std::size_t begin = (row + 1) * width - 2 * pairs;
    for (std::size_t i = begin; i < begin + 2 * pairs; ++i) {
      tail.push_back(to_float(rows[i]));
    }
    inverse ? reference::rotate_back(tail, phase) : reference::rotate(tail, phase);
    for (std::size_t i = 0; i < tail.size(); ++i) {
      out[begin + i] = to_bf16(tail[i]);
    }
  }
  return out;
}

TEST_F(Rotary, EqualsTheReferenceInBothDirections) {
  constexpr std::size_t kPairs = 16;
  constexpr std::size_t kWidth = 96;
  constexpr std::size_t kHeads = 3;
  const Tables t = tables(40, kPairs);
  const OnDevice<float> cos(t.cos);
  const OnDevice<float> sin(t.sin);
  const OnDevice<std::int64_t> first(std::vector<std::int64_t>{5});
  std::vector<std::size_t> positions;
  for (std::size_t row = 0; row < 4 * kHeads; ++row) {
    positions.push_back(5 + row / kHeads * 2);
  }
  const auto rows = random_bf16(positions.size() * kWidth, 1);
  const OnDevice<Bf16> from(rows);
  const OnDevice<Bf16> to(rows.size(), kUnwritten);
  for (const bool inverse : {false, true}) {
    RotaryArgs args{.from = from.get(),
                    .to = to.get(),
                    .cos = cos.get(),
                    .sin = sin.get(),
                    .first = first.get(),
                    .stride = 2,
                    .rows = static_cast<std::int64_t>(positions.size()),
                    .rows_per_position = kHeads,
                    .width = kWidth,
                    .rope_dim = 2 * kPairs,
                    .direction = inverse ? RotaryDirection::inverse : RotaryDirection::forward};
    launch_rotary(args, nullptr);
    const auto want = rotate_on_host(rows, kWidth, t, kPairs, positions, inverse);
    EXPECT_EQ(widened(to.host()), widened(want));
    const OnDevice<Bf16> in_place(rows);
    args.from = in_place.get();
    args.to = in_place.get();
    launch_rotary(args, nullptr);
    EXPECT_EQ(in_place.host(), to.host());
  }
}

TEST_F(Window, RingKeepsTheLastRowsInTheirSlots) {
  constexpr std::int64_t kWindow = 8;
  constexpr std::int64_t kWidth = 32;
  for (const std::int64_t tokens : {1, 7, 8, 9, 21}) {
    for (const std::int64_t start : {0, 13}) {
      if (start > 0 && tokens > 1) {
        continue;
      }
      const auto kv = random_bf16(static_cast<std::size_t>(tokens * kWidth), static_cast<unsigned>(tokens));
      const OnDevice<Bf16> kv_device(kv);
      const OnDevice<Bf16> ring(static_cast<std::size_t>(kWindow * kWidth));
      const OnDevice<StepScalars> step(1);
      launch_set_step(step.get(), {.position = start, .ring_slot = start % kWindow}, nullptr);
      launch_ring_write({kv_device.get(), ring.get(), step.get(), tokens, kWindow, kWidth}, nullptr);
      std::vector<Bf16> want(static_cast<std::size_t>(kWindow * kWidth));
      for (std::int64_t t = reference::first_kept_token(tokens, kWindow); t < tokens; ++t) {
        std::copy_n(kv.begin() + t * kWidth, kWidth, want.begin() + reference::ring_slot(start + t, kWindow) * kWidth);
      }
      EXPECT_EQ(ring.host(), want) << tokens << " tokens from " << start;
    }
  }
}

TEST_F(Window, IndicesEqualTheReference) {
  constexpr std::int64_t kWindow = 8;
  constexpr std::int64_t kPicks = 5;
  const auto expect = [&](const CallShape& call) {
    const std::int64_t columns = call.prefill() ? std::min(call.tokens, kWindow) : kWindow;
    const std::int64_t offset = call.prefill() ? call.tokens : kWindow;
    std::vector<std::int32_t> selection;
    for (std::int64_t i = 0; i < call.tokens * kPicks; ++i) {
      selection.push_back(static_cast<std::int32_t>(i % 4 - 1));
    }
    const OnDevice<std::int32_t> picks(selection);
    const auto width = static_cast<std::size_t>(columns + kPicks);
    const OnDevice<std::int32_t> idx(static_cast<std::size_t>(call.tokens) * width, -77);
    const OnDevice<StepScalars> step(1);
    launch_set_step(step.get(), {.position = call.start_pos, .ring_slot = call.start_pos % kWindow}, nullptr);
    launch_index_build({.selection = picks.get(),
                        .idx = idx.get(),
                        .step = step.get(),
                        .tokens = call.tokens,
                        .window = kWindow,
                        .window_columns = columns,
                        .selection_columns = kPicks,
                        .offset = offset,
                        .prefill = call.prefill()},
                       nullptr);
    std::vector<std::int32_t> want(static_cast<std::size_t>(call.tokens) * width);
    for (std::int64_t t = 0; t < call.tokens; ++t) {
      const std::span<std::int32_t> row(want.data() + static_cast<std::size_t>(t) * width, width);
      reference::window_indices(call, kWindow, t, row.first(static_cast<std::size_t>(columns)));
      for (std::int64_t j = 0; j < kPicks; ++j) {
        const std::int32_t pick = selection[static_cast<std::size_t>(t * kPicks + j)];
        row[static_cast<std::size_t>(columns + j)] = pick < 0 ? -1 : static_cast<std::int32_t>(pick + offset);
      }
    }
    EXPECT_EQ(idx.host(), want) << call.tokens << " tokens from " << call.start_pos;
  };
  for (const std::int64_t tokens : {1, 5, 8, 9, 21}) {
    expect({.tokens = tokens, .start_pos = 0});
  }
  for (const std::int64_t start : {1, 6, 7, 8, 9, 4095}) {
    expect({.tokens = 1, .start_pos = start});
  }
}

TEST_F(Elementwise, ScaleRoundsOnce) {
  const auto x = random_bf16(1001, 5);
  const OnDevice<Bf16> x_device(x);
  constexpr float kScale = 0.0721687824F;
  launch_scale({x_device.get(), x_device.get(), 1001, kScale}, nullptr);
  std::vector<Bf16> want;
  for (const Bf16 v : x) {
    want.push_back(to_bf16(to_float(v) * kScale));
  }
  EXPECT_EQ(x_device.host(), want);
}

TEST_F(Elementwise, PoisonReachesEveryByteAndNoMore) {
  for (const std::size_t bytes : {1U, 2U, 4U, 1030U}) {
    const OnDevice<std::uint8_t> memory(bytes + 16, 0x11);
    launch_poison(memory.get(), bytes, nullptr);
    const auto got = memory.host();
    for (std::size_t b = 0; b < got.size(); ++b) {
      const auto want = b < bytes ? static_cast<std::uint8_t>(kPoisonWord >> (8 * (b % 4))) : std::uint8_t{0x11};
      EXPECT_EQ(got[b], want) << b;
    }
  }
}

TEST_F(Elementwise, FillWritesAll) {
  const OnDevice<float> values(77, 1.0F);
  launch_fill(values.get(), 77, -2.5F, nullptr);
  EXPECT_EQ(values.host(), std::vector<float>(77, -2.5F));
}

}  // namespace
}  // namespace attndiff::kernels
