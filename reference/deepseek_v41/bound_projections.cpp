#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/contract/bfloat16.h"
#include "reference/deepseek_v41/bound_parts.h"

namespace attndiff::deepseek_v41 {
namespace {

/// Slack of rope(rmsnorm(linear(x, weight), norm)): rows of one width, row i at positions[i].
Tensor normed_and_rotated_slack(const BoundInputs& in, const Tensor& x, const char* weight, const char* norm,
                                std::span<const std::int64_t> positions) {
  Bounded rows = bounded_norm(in, rounded_bf16(bounded_product(in, x, weight)), norm);
  const std::int64_t width = rows.value.shape()[1];
  Tensor slack = rows.slack;
  const Bounded tails = rounded_bf16({.value = row_tails(rows.value, width, in.config.rope_dim),
                                      .slack = row_tails(rows.slack, width, in.config.rope_dim)});
  rotate_slack(in, tails, positions, 1, slack);
  return slack;
}

}  // namespace

Tensor qr_slack(const BoundInputs& in) {
  return bounded_norm(in, rounded_bf16(bounded_product(in, to_f32(in.x), "wq_a")), "q_norm").slack;
}

Tensor rotated_query_slack(const BoundInputs& in, StageId stage, const char* weight, std::int64_t heads,
                           std::int64_t width) {
  const Tensor qr = to_f32(*in.value(kQr));
  const std::int64_t tail = in.config.rope_dim;
  const std::int64_t tokens = in.call.tokens;
  Tensor slack = product_slack(in, qr, weight).reshaped(in.value(stage)->shape());
  // Only the turned entries were rounded before; their products are made again, head by head.
  Bounded tails{.value = Tensor(DType::f32, {tokens * heads, tail}),
                .slack = Tensor(DType::f32, {tokens * heads, tail})};
  for (std::int64_t h = 0; h < heads; ++h) {
    const Bounded part = rounded_bf16(bounded_product(in, qr, weight, (h + 1) * width - tail, tail));
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto from = static_cast<std::size_t>(t * tail);
      const auto to = static_cast<std::ptrdiff_t>((t * heads + h) * tail);
      const auto values = part.value.as<float>().subspan(from, static_cast<std::size_t>(tail));
      const auto moves = part.slack.as<float>().subspan(from, static_cast<std::size_t>(tail));
      std::copy(values.begin(), values.end(), tails.value.as<float>().begin() + to);
      std::copy(moves.begin(), moves.end(), tails.slack.as<float>().begin() + to);
    }
  }
  rotate_slack(in, tails, call_positions(in.call), heads, slack);
  return slack;
}

Tensor kv_pre_slack(const BoundInputs& in) {
  return normed_and_rotated_slack(in, to_f32(in.x), "wkv", "kv_norm", call_positions(in.call));
}

Tensor index_k_pre_slack(const BoundInputs& in) {
  return normed_and_rotated_slack(in, to_f32(*in.value(kLatent)), "idx_wk", "idx_k_norm",
                                  group_positions(in.role, in.call));
}

Tensor compress_pre_slack(const BoundInputs& in) {
  const Tensor latent = to_f32(*in.value(kLatent));
  Tensor slack(DType::f32, latent.shape());  // entries that do not turn are copies
  Tensor tails = row_tails(latent, in.config.head_dim, in.config.rope_dim);
  const Shape shape = tails.shape();
  rotate_slack(in, {.value = std::move(tails), .slack = Tensor(DType::f32, shape)}, group_positions(in.role, in.call),
               1, slack);
  return slack;
}

Tensor og_slack(const BoundInputs& in) {
  const ModelConfig& c = in.config;
  const std::int64_t tokens = in.call.tokens;
  const std::int64_t depth = c.n_heads / c.groups * c.head_dim;
  Tensor back = to_f32(*in.value(kO));
  Tensor tails = row_tails(back, c.head_dim, c.rope_dim);
  Tensor turn_slack(DType::f32, back.shape());
  rotate_slack(in, {.value = tails, .slack = Tensor(DType::f32, tails.shape())}, call_positions(in.call), c.n_heads,
               turn_slack);

  const Weight& wo_a = in.norms.weights().at("wo_a");
  const auto& norms = in.norms.of("wo_a", in.pool);
  Tensor slack(DType::f32, {tokens, c.groups * c.o_rank});
  in.pool.parallel_for(tokens, [&](std::int64_t t) {
    const reference::RotaryPhase phase = phase_at(in, in.call.start_pos + t);
    const auto size = static_cast<std::size_t>(c.n_heads * c.head_dim);
    const auto values = back.as<float>().subspan(static_cast<std::size_t>(t) * size, size);
    const auto turns = turn_slack.as<float>().subspan(static_cast<std::size_t>(t) * size, size);
    const auto out = slack.as<float>().subspan(static_cast<std::size_t>(t * c.groups * c.o_rank),
                                               static_cast<std::size_t>(c.groups * c.o_rank));
    for (std::int64_t h = 0; h < c.n_heads; ++h) {
      const auto tail = values.subspan(static_cast<std::size_t>((h + 1) * c.head_dim - c.rope_dim),
                                       static_cast<std::size_t>(c.rope_dim));
      reference::rotate_back(tail, phase);
    }
    std::vector<float> column(static_cast<std::size_t>(depth));
    for (std::int64_t g = 0; g < c.groups; ++g) {
      const auto group = values.subspan(static_cast<std::size_t>(g * depth), static_cast<std::size_t>(depth));
      const auto moves = turns.subspan(static_cast<std::size_t>(g * depth), static_cast<std::size_t>(depth));
      const float norm = norm2(group);
      for (std::int64_t o = 0; o < c.o_rank; ++o) {
        out[static_cast<std::size_t>(g * c.o_rank + o)] =
            sum_slack(depth, norms[static_cast<std::size_t>(g * c.o_rank + o)], norm);
      }
      for (std::int64_t k = 0; k < depth; ++k) {
        const float spread = rounding_spread(group[static_cast<std::size_t>(k)], moves[static_cast<std::size_t>(k)]);
        if (moves[static_cast<std::size_t>(k)] == 0 || spread == 0) {
          continue;  // all but a few in ten thousand
        }
        for (std::int64_t o = 0; o < c.o_rank; ++o) {
          const std::int64_t at = (g * c.o_rank + o) * depth + k;
          const float w = wo_a.values.dtype() == DType::bf16
                              ? to_float(wo_a.values.as<Bf16>()[static_cast<std::size_t>(at)])
                              : wo_a.values.as<float>()[static_cast<std::size_t>(at)];
          out[static_cast<std::size_t>(g * c.o_rank + o)] += std::fabs(w) * spread;
        }
      }
    }
  });
  return slack;
}

Tensor out_slack(const BoundInputs& in) { return product_slack(in, to_f32(*in.value(kOg)), "wo_b"); }

}  // namespace attndiff::deepseek_v41
