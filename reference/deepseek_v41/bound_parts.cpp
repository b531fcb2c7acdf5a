#include "reference/deepseek_v41/bound_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/compressor.h"
#include "reference/contract/bfloat16.h"
#include "reference/product.h"
#include "reference/quantize.h"
#include "reference/rms_norm.h"

namespace attndiff::deepseek_v41 {
namespace {

/// The activation as a weight sees it: through the fp8 round trip before an e4m3 weight.
Tensor activation_for(const BoundInputs& in, const Tensor& x, const char* weight) {
  Tensor activation = x;
  const Weight& w = in.norms.weights().at(weight);
  if (w.quantised()) {
    const auto depth = static_cast<std::size_t>(w.values.shape()[1]);
    const auto values = activation.as<float>();
    for (std::size_t begin = 0; begin < values.size(); begin += depth) {
      reference::fp8_round_trip(values.subspan(begin, depth));
    }
  }
  return activation;
}

void fill_product_slack(const BoundInputs& in, const Tensor& x, const char* weight, std::int64_t row_begin,
                        Tensor& slack) {
  const auto& norms = in.norms.of(weight, in.pool);
  const std::int64_t depth = in.norms.weights().at(weight).values.shape()[1];
  const auto rows = static_cast<std::size_t>(slack.shape()[slack.shape().rank() - 1]);
  const auto width = static_cast<std::size_t>(depth);
  const auto out = slack.as<float>();
  const auto values = x.as<float>();
  for (std::size_t t = 0; t * width < values.size(); ++t) {
    const float norm_x = norm2(values.subspan(t * width, width));
    for (std::size_t o = 0; o < rows; ++o) {
      out[t * rows + o] = sum_slack(depth, norms[static_cast<std::size_t>(row_begin) + o], norm_x);
    }
  }
}

}  // namespace

float rounding_spread(float v, float slack) noexcept {
  const float rounded = round_bf16(v);
  return std::max(std::fabs(round_bf16(v + slack) - rounded), std::fabs(round_bf16(v - slack) - rounded));
}

float sum_slack(std::int64_t terms, float norm_w, float norm_x) noexcept {
  // Below 2^-126 a product has no relative error but an absolute one, 2^-150, on either side; sums there are exact.
  const float underflow = static_cast<float>(terms) * 0x1p-149F;
  return kSumFactor * std::sqrt(static_cast<float>(terms)) * kUnitRoundoff * norm_w * norm_x + underflow;
}

float norm2(std::span<const float> v) noexcept {
  double sum = 0;
  for (const float e : v) {
    sum += static_cast<double>(e) * e;
  }
  return static_cast<float>(std::sqrt(sum));
}

Bounded bounded_product(const BoundInputs& in, const Tensor& x, const char* weight, std::int64_t row_begin,
                        std::int64_t rows) {
  const Weight& w = in.norms.weights().at(weight);
  const std::int64_t depth = w.values.shape()[1];
  const Tensor activation = activation_for(in, x, weight);
  const std::int64_t tokens = x.count() / depth;
  Bounded b{.value = Tensor(DType::f32, {tokens, rows}), .slack = Tensor(DType::f32, {tokens, rows})};
  reference::product(in.pool, {.x = activation.as<float>(),
                               .x_stride = depth,
                               .tokens = tokens,
                               .depth = depth,
                               .weight = w,
                               .row_begin = row_begin,
                               .rows = rows,
                               .y = b.value.as<float>(),
                               .y_stride = rows});
  fill_product_slack(in, activation, weight, row_begin, b.slack);
  return b;
}

Bounded bounded_product(const BoundInputs& in, const Tensor& x, const char* weight) {
  return bounded_product(in, x, weight, 0, in.norms.weights().at(weight).values.shape()[0]);
}

Tensor product_slack(const BoundInputs& in, const Tensor& x, const char* weight) {
  const Shape& shape = in.norms.weights().at(weight).values.shape();
  Tensor slack(DType::f32, {x.count() / shape[1], shape[0]});
  fill_product_slack(in, activation_for(in, x, weight), weight, 0, slack);
  return slack;
}

Bounded rounded_bf16(Bounded b) {
  const auto values = b.value.as<float>();
  const auto slack = b.slack.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    slack[i] = rounding_spread(values[i], slack[i]);
    values[i] = round_bf16(values[i]);
  }
  return b;
}

Bounded bounded_norm(const BoundInputs& in, Bounded rows, const char* weight) {
  // The mean's sum, the square root, the division and two products, each within one rounding of the result.
  constexpr float kRoundings = 6.0F;
  // Moves of the row's entries, combined as independent.
  constexpr float kLambda = 8.0F;
  const auto w = in.norms.weights().at(weight).values.as<float>();
  const auto eps = static_cast<float>(in.config.eps);
  const auto values = rows.value.as<float>();
  const auto slack = rows.slack.as<float>();
  std::vector<float> out(w.size());
  for (std::size_t begin = 0; begin < values.size(); begin += w.size()) {
    const auto row = values.subspan(begin, w.size());
    const auto moves = slack.subspan(begin, w.size());
    double square_sum = 0;
    double moved = 0;
    for (std::size_t d = 0; d < row.size(); ++d) {
      square_sum += static_cast<double>(row[d]) * row[d];
      moved += std::pow(static_cast<double>(row[d]) * moves[d], 2);
    }
    const double mean = square_sum / static_cast<double>(row.size());
    const auto inverse_rms = static_cast<float>(1.0 / std::sqrt(mean + eps));
    const float relative = square_sum > 0 ? static_cast<float>(kLambda * std::sqrt(moved) / square_sum) : 0.0F;
    const float own = (kRoundings + kSumFactor * std::sqrt(static_cast<float>(row.size())) / 2) * kUnitRoundoff;
    reference::rms_norm(row, w, eps, out);
    for (std::size_t d = 0; d < row.size(); ++d) {
      moves[d] = std::fabs(w[d]) * inverse_rms * (moves[d] + std::fabs(row[d]) * relative) + own * std::fabs(out[d]);
    }
    std::copy(out.begin(), out.end(), row.begin());
  }
  return rows;
}

void rotate_slack(const BoundInputs& in, const Bounded& tails, std::span<const std::int64_t> positions,
                  std::int64_t per, Tensor& slack) {
  // Three roundings of the turned value, and two units of float32 in the table's cosine and sine.
  constexpr float kArithmetic = 3 * kUnitRoundoff + 0x1p-22F;
  const auto turned = static_cast<std::size_t>(in.config.rope_dim);
  const auto values = tails.value.as<float>();
  const auto moves = tails.slack.as<float>();
  const auto out = slack.as<float>();
  const std::size_t rows = values.size() / turned;
  const std::size_t width = out.size() / rows;
  in.pool.parallel_for(static_cast<std::int64_t>(positions.size()), [&](std::int64_t i) {
    const reference::RotaryPhase phase = phase_at(in, positions[static_cast<std::size_t>(i)]);
    for (std::int64_t r = i * per; r < (i + 1) * per; ++r) {
      const auto row = static_cast<std::size_t>(r);
      for (std::size_t k = 0; k < turned / 2; ++k) {
        const std::size_t at = row * turned + 2 * k;
        const float c = std::fabs(phase.cos[k]);
        const float s = std::fabs(phase.sin[k]);
        const float own = kArithmetic * (std::fabs(values[at]) + std::fabs(values[at + 1]));
        const std::size_t to = (row + 1) * width - turned + 2 * k;
        out[to] = c * moves[at] + s * moves[at + 1] + own;
        out[to + 1] = s * moves[at] + c * moves[at + 1] + own;
      }
    }
  });
}

Tensor row_tails(const Tensor& rows, std::int64_t width, std::int64_t tail) {
  const std::int64_t count = rows.count() / width;
  Tensor tails(DType::f32, {count, tail});
  const auto from = rows.as<float>();
  for (std::int64_t r = 0; r < count; ++r) {
    const auto part = from.subspan(static_cast<std::size_t>((r + 1) * width - tail), static_cast<std::size_t>(tail));
    std::copy(part.begin(), part.end(), tails.as<float>().begin() + r * tail);
  }
  return tails;
}

reference::RotaryPhase phase_at(const BoundInputs& in, std::int64_t position) {
  reference::RotaryPhase phase;
  for (const float f : reference::rotary_frequencies(in.config, in.role.ratio)) {
    const double angle = reference::rotary_angle(f, position);
    phase.cos.push_back(static_cast<float>(std::cos(angle)));
    phase.sin.push_back(static_cast<float>(std::sin(angle)));
  }
  return phase;
}

std::vector<std::int64_t> call_positions(const CallShape& call) {
  std::vector<std::int64_t> positions;
  for (std::int64_t t = 0; t < call.tokens; ++t) {
    positions.push_back(call.start_pos + t);
  }
  return positions;
}

std::vector<std::int64_t> group_positions(const LayerRole& role, const CallShape& call) {
  std::vector<std::int64_t> positions;
  for (std::int64_t g = 0; g < groups_completed(role, call); ++g) {
    positions.push_back(reference::group_position(role, call, g));
  }
  return positions;
}

}  // namespace attndiff::deepseek_v41
