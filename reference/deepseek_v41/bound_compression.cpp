#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/compressor.h"
#include "reference/deepseek_v41/bound_parts.h"

namespace attndiff::deepseek_v41 {
namespace {

struct Members {
  std::span<const float> k;  ///< [ratio, width]
  std::span<const float> g;
  std::span<const float> k_slack;  ///< 0 where a member is given
  std::span<const float> g_slack;
};

/// One pooled row with its slack: each member's weight moves with its own score, by p (k - pooled), and its value by p.
void pool_bounded(const Members& m, std::int64_t ratio, std::span<float> value, std::span<float> slack) {
  // Per member the exponential, the division and the products.
  constexpr float kRoundings = 8.0F;
  reference::pool_group(m.k, m.g, ratio, value);
  const std::size_t width = value.size();
  for (std::size_t d = 0; d < width; ++d) {
    float largest = m.g[d];
    for (std::size_t i = d; i < m.g.size(); i += width) {
      largest = std::max(largest, m.g[i]);
    }
    float denominator = 0;
    for (std::size_t i = d; i < m.g.size(); i += width) {
      denominator += std::exp(m.g[i] - largest);
    }
    float moved = 0;
    for (std::size_t i = d; i < m.g.size(); i += width) {
      const float p = std::exp(m.g[i] - largest) / denominator;
      if (p == 0) {
        continue;
      }
      const float distance = std::fabs(m.k[i] - value[d]);
      const float argument = (std::fabs(m.g[i]) + std::fabs(largest)) * kUnitRoundoff;
      moved += p * (distance * argument + kRoundings * kUnitRoundoff * std::fabs(m.k[i]));
      moved += p * (m.k_slack[i] + distance * m.g_slack[i]);
    }
    slack[d] = moved;
  }
}

}  // namespace

Tensor comp_state_slack(const BoundInputs& in) {
  const std::int64_t ratio = in.role.ratio;
  const std::int64_t width = in.config.head_dim;
  Tensor slack(DType::f32, {2, ratio, width});  // members of earlier calls are given: no slack
  const std::int64_t whole = in.call.prefill() ? in.call.tokens / ratio * ratio : 0;
  const std::int64_t first_slot = in.call.prefill() ? 0 : in.call.start_pos % ratio;
  const std::int64_t count = in.call.tokens - whole;
  if (count == 0) {
    return slack;
  }
  Tensor x(DType::bf16, {count, in.config.dim});  // of the tokens that no group has taken
  const auto from = in.x.as<Bf16>().subspan(static_cast<std::size_t>(whole * in.config.dim));
  std::copy(from.begin(), from.end(), x.as<Bf16>().begin());
  const Tensor k = product_slack(in, activation_for(in, x, "comp_wkv"), "comp_wkv");
  const Tensor g = product_slack(in, activation_for(in, x, "comp_wgate"), "comp_wgate");
  const auto out = slack.as<float>();
  std::copy(k.as<float>().begin(), k.as<float>().end(), out.begin() + first_slot * width);
  std::copy(g.as<float>().begin(), g.as<float>().end(), out.begin() + (ratio + first_slot) * width);
  return slack;
}

Tensor latent_slack(const BoundInputs& in) {
  const std::int64_t ratio = in.role.ratio;
  const std::int64_t width = in.config.head_dim;
  if (ratio == 1) {
    return bounded_norm(in, rounded_bf16(in, bounded_product(in, activation_for(in, in.x, "comp_wkv"), "comp_wkv")),
                        "comp_norm")
        .slack;
  }
  const std::int64_t groups = groups_completed(in.role, in.call);
  Bounded pooled{.value = Tensor(DType::f32, {groups, width}), .slack = Tensor(DType::f32, {groups, width})};
  const auto row = [&](Tensor& t, std::int64_t i) {
    return t.as<float>().subspan(static_cast<std::size_t>(i * width), static_cast<std::size_t>(width));
  };
  if (in.call.prefill()) {
    const Bounded k = bounded_product(in, activation_for(in, in.x, "comp_wkv"), "comp_wkv");
    const Bounded g = bounded_product(in, activation_for(in, in.x, "comp_wgate"), "comp_wgate");
    const auto size = static_cast<std::size_t>(ratio * width);
    in.pool.parallel_for(groups, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i) * size;
      pool_bounded({.k = k.value.as<float>().subspan(at, size),
                    .g = g.value.as<float>().subspan(at, size),
                    .k_slack = k.slack.as<float>().subspan(at, size),
                    .g_slack = g.slack.as<float>().subspan(at, size)},
                   ratio, row(pooled.value, i), row(pooled.slack, i));
    });
  } else {
    // Earlier members were given; the one of this call is each side's own until it has been pooled.
    const auto state = in.value(kCompState)->as<float>();
    const Tensor own = comp_state_slack(in);
    const auto slack = own.as<float>();
    const std::size_t half = state.size() / 2;
    pool_bounded({.k = state.first(half),
                  .g = state.subspan(half),
                  .k_slack = slack.first(half),
                  .g_slack = slack.subspan(half)},
                 ratio, row(pooled.value, 0), row(pooled.slack, 0));
  }
  return bounded_norm(in, rounded_bf16(in, std::move(pooled)), "comp_norm").slack;
}

}  // namespace attndiff::deepseek_v41
