#include "reference/deepseek_v41/bound_parts.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/compressor.h"
#include "reference/contract/bfloat16.h"
#include "reference/product.h"
#include "reference/quantize.h"
#include "reference/rms_norm.h"

namespace attndiff::deepseek_v41 {
float rounding_spread(float v, float slack) noexcept {
  const float rounded = round_bf16(v);
  return std::max(std::fabs(round_bf16(v + slack) - rounded), std::fabs(round_bf16(v - slack) - rounded));
}

float norm2(std::span<const float> v) noexcept {
  const Eigen::Map<const Eigen::ArrayXf> values(v.data(), static_cast<Eigen::Index>(v.size()));
  return static_cast<float>(std::sqrt(values.cast<double>().square().sum()));
}

Tensor floats_of(const BoundInputs& in, const Tensor& t) {
  Tensor floats = Tensor::unwritten(DType::f32, t.shape());
  const auto from = t.as<Bf16>();
  const auto to = floats.as<float>();
  in.pool.parallel_ranges(t.count(), kElementsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    std::transform(from.begin() + begin, from.begin() + end, to.begin() + begin, [](Bf16 v) { return to_float(v); });
  });
  return floats;
}

Tensor activation_for(const BoundInputs& in, const Tensor& x, const char* weight) {
  Tensor activation = floats_of(in, x);
  const Weight& w = in.norms.weights().at(weight);
  if (w.quantised()) {
    const auto depth = static_cast<std::size_t>(w.values.shape()[1]);
    const auto values = activation.as<float>();
    in.pool.parallel_for(static_cast<std::int64_t>(values.size() / depth), [&](std::int64_t t) {
      reference::fp8_round_trip(values.subspan(static_cast<std::size_t>(t) * depth, depth));
    });
  }
  return activation;
}

Tensor product_slack(const BoundInputs& in, const Tensor& activation, const char* weight) {
  const auto& norms = in.norms.of(weight, in.pool);
  const std::int64_t depth = in.norms.weights().at(weight).values.shape()[1];
  const auto rows = norms.size();
  const auto width = static_cast<std::size_t>(depth);
  const std::int64_t tokens = activation.count() / depth;
  Tensor slack = Tensor::unwritten(DType::f32, {tokens, static_cast<std::int64_t>(rows)});
  const auto out = slack.as<float>();
  const auto values = activation.as<float>();
  const SumSlack sum_slack(depth);
  in.pool.parallel_for(tokens, [&](std::int64_t token) {
    const auto t = static_cast<std::size_t>(token);
    const float norm_x = norm2(values.subspan(t * width, width));
    std::transform(norms.begin(), norms.end(), out.subspan(t * rows, rows).begin(),
                   [&](float norm_w) { return sum_slack(norm_w, norm_x); });
  });
  return slack;
}

Bounded bounded_product(const BoundInputs& in, const Tensor& activation, const char* weight) {
  const Weight& w = in.norms.weights().at(weight);
  const std::int64_t rows = w.values.shape()[0];
  const std::int64_t depth = w.values.shape()[1];
  const std::int64_t tokens = activation.count() / depth;
  Bounded b{.value = Tensor::unwritten(DType::f32, {tokens, rows}), .slack = product_slack(in, activation, weight)};
  reference::product(in.pool, {.x = activation.as<float>(),
                               .x_stride = depth,
                               .tokens = tokens,
                               .depth = depth,
                               .weight = w,
                               .row_begin = 0,
                               .rows = rows,
                               .y = b.value.as<float>(),
                               .y_stride = rows});
  return b;
}

Bounded rounded_bf16(const BoundInputs& in, Bounded b) {
  const auto values = b.value.as<float>();
  const auto slack = b.slack.as<float>();
  in.pool.parallel_ranges(b.value.count(), kElementsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      slack[i] = rounding_spread(values[i], slack[i]);
      values[i] = round_bf16(values[i]);
    }
  });
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
  in.pool.parallel_for(static_cast<std::int64_t>(values.size() / w.size()), [&](std::int64_t r) {
    const std::size_t begin = static_cast<std::size_t>(r) * w.size();
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
    std::vector<float> out(w.size());
    reference::rms_norm(row, w, eps, out);
    for (std::size_t d = 0; d < row.size(); ++d) {
      moves[d] = std::fabs(w[d]) * inverse_rms * (moves[d] + std::fabs(row[d]) * relative) + own * std::fabs(out[d]);
    }
    std::copy(out.begin(), out.end(), row.begin());
  });
  return rows;
}

float turn_slack(float even, float odd) noexcept {
  // Three roundings of the turned value, and two units of float32 in the table's cosine and sine.
  constexpr float kArithmetic = 3 * kUnitRoundoff + 0x1p-22F;
  return kArithmetic * (std::fabs(even) + std::fabs(odd));
}

void rotate_slack(const BoundInputs& in, const Bounded& tails, std::span<const std::int64_t> positions,
                  std::int64_t per, Tensor& slack) {
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
        const float own = turn_slack(values[at], values[at + 1]);
        const std::size_t to = (row + 1) * width - turned + 2 * k;
        out[to] = c * moves[at] + s * moves[at + 1] + own;
        out[to + 1] = s * moves[at] + c * moves[at + 1] + own;
      }
    }
  });
}

Tensor row_tails(const BoundInputs& in, const Tensor& rows, std::int64_t width, std::int64_t tail) {
  const std::int64_t count = rows.count() / width;
  Tensor tails = Tensor::unwritten(DType::f32, {count, tail});
  const auto from = rows.as<float>();
  const auto to = tails.as<float>();
  in.pool.parallel_ranges(
      count, std::max<std::int64_t>(1, kElementsAtOnce / tail), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const auto part =
              from.subspan(static_cast<std::size_t>((r + 1) * width - tail), static_cast<std::size_t>(tail));
          std::copy(part.begin(), part.end(), to.begin() + r * tail);
        }
      });
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

StageSlack moved_by_entries(const BoundInputs& in, StageId stage, Tensor slack) {
  const auto values = in.value(stage)->as<Bf16>();
  const auto width = static_cast<std::size_t>(slack.shape()[slack.shape().rank() - 1]);
  StageSlack all{.values = std::move(slack), .moves = {}};
  if (values.empty()) {
    return all;
  }
  const auto slacks = std::as_const(all.values).as<float>();
  all.moves.resize(values.size() / width);
  in.pool.parallel_ranges(static_cast<std::int64_t>(all.moves.size()),
                          std::max<std::int64_t>(1, kElementsAtOnce / static_cast<std::int64_t>(width)),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (auto row = static_cast<std::size_t>(begin); row < static_cast<std::size_t>(end);
                                 ++row) {
                              float largest = 0;
                              float second = 0;
                              for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
                                if (std::isfinite(slacks[i]) && std::isfinite(to_float(values[i]))) {
                                  second = std::max(second, std::min(largest, slacks[i]));
                                  largest = std::max(largest, slacks[i]);
                                }
                              }
                              all.moves[row] = std::hypot(largest, second);
                            }
                          });
  return all;
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
