#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "reference/contract/bfloat16.h"
#include "reference/deepseek_v41/bound_parts.h"
#include "reference/product.h"

namespace attndiff::deepseek_v41 {
namespace {

/// rmsnorm(bf16(linear(x, weight)), norm) of given rows x.
Bounded normed_product(const BoundInputs& in, const Tensor& x, const char* weight, const char* norm) {
  return bounded_norm(in, rounded_bf16(in, bounded_product(in, activation_for(in, x, weight), weight)), norm);
}

/// Slack of rope(rmsnorm(linear(x, weight), norm)): rows of one width, row i at positions[i].
Tensor normed_and_rotated_slack(const BoundInputs& in, const Tensor& x, const char* weight, const char* norm,
                                std::span<const std::int64_t> positions) {
  Bounded rows = normed_product(in, x, weight, norm);
  const std::int64_t width = rows.value.shape()[1];
  const Bounded tails = rounded_bf16(in, {.value = row_tails(in, rows.value, width, in.config.rope_dim),
                                          .slack = row_tails(in, rows.slack, width, in.config.rope_dim)});
  rotate_slack(in, tails, positions, 1, rows.slack);
  return std::move(rows.slack);
}

/// An entry of a token's `o` that turning back may round to another bf16.
struct Move {
  std::size_t token = 0;
  std::size_t column = 0;  ///< of its group's rows of wo_a
  float spread = 0;
};

/// Of the moves of each group's entries, the largest 2-norm for each token. `squares` holds the sums of a move's
/// squares by group, part of its outputs, and move, added up in this order whichever thread had which.
void keep_largest(const std::vector<std::vector<Move>>& by_group, const std::vector<std::vector<double>>& squares,
                  std::span<float> largest) {
  const std::size_t parts = squares.size() / by_group.size();
  for (std::size_t g = 0; g < by_group.size(); ++g) {
    for (std::size_t m = 0; m < by_group[g].size(); ++m) {
      double sum = 0;
      for (std::size_t part = g * parts; part < (g + 1) * parts; ++part) {
        sum += squares[part][m];
      }
      float& of_token = largest[by_group[g][m].token];
      of_token = std::max(of_token, static_cast<float>(std::sqrt(sum)));
    }
  }
}

/// Adds what the moves of each group's entries do to its outputs: |w| * spread. A few entries in ten thousand move, so
/// this goes through the weight row by row, not through a column of it for each entry.
void add_moves(const BoundInputs& in, const std::vector<std::vector<Move>>& by_group, StageSlack& slack) {
  const std::int64_t rank = in.config.o_rank;
  const auto outputs = by_group.size() * static_cast<std::size_t>(rank);
  const Weight& wo_a = in.norms.weights().at("wo_a");
  const auto depth = static_cast<std::size_t>(wo_a.values.shape()[1]);
  const auto values = slack.values.as<float>();
  constexpr std::int64_t kRowsAtOnce = 16;  // a line of memory of the slack
  const std::int64_t parts = (rank + kRowsAtOnce - 1) / kRowsAtOnce;
  std::vector<std::vector<double>> squares(by_group.size() * static_cast<std::size_t>(parts));
  in.pool.parallel_for(static_cast<std::int64_t>(squares.size()), [&](std::int64_t i) {
    const auto& moves = by_group[static_cast<std::size_t>(i / parts)];
    if (moves.empty()) {
      return;
    }
    const std::int64_t first = i / parts * rank + i % parts * kRowsAtOnce;
    const std::int64_t count = std::min(kRowsAtOnce, rank - i % parts * kRowsAtOnce);
    auto& sums = squares[static_cast<std::size_t>(i)];
    sums.resize(moves.size());
    std::vector<float> rows(static_cast<std::size_t>(count) * depth);
    reference::weight_rows(wo_a, first, count, rows);
    for (std::size_t r = 0; r * depth < rows.size(); ++r) {
      for (std::size_t m = 0; m < moves.size(); ++m) {
        const float moved = std::fabs(rows[r * depth + moves[m].column]) * moves[m].spread;
        values[moves[m].token * outputs + static_cast<std::size_t>(first) + r] += moved;
        sums[m] += static_cast<double>(moved) * moved;
      }
    }
  });
  keep_largest(by_group, squares, slack.moves);
}

}  // namespace

Tensor qr_slack(const BoundInputs& in) { return normed_product(in, in.x, "wq_a", "q_norm").slack; }

Tensor rotated_query_slack(const BoundInputs& in, StageId stage, const char* weight, std::int64_t heads,
                           std::int64_t width) {
  const Tensor qr = activation_for(in, *in.value(kQr), weight);
  const std::int64_t tail = in.config.rope_dim;
  const std::int64_t tokens = in.call.tokens;
  const Weight& w = in.norms.weights().at(weight);
  const std::int64_t depth = w.values.shape()[1];
  Tensor slack = product_slack(in, qr, weight).reshaped(in.value(stage)->shape());
  // Only the turned entries were rounded before; their products are made again, head by head.
  Bounded tails{.value = Tensor::unwritten(DType::f32, {tokens * heads, tail}),
                .slack = row_tails(in, slack, width, tail)};
  const std::int64_t panels = (tail + reference::kPanelRows - 1) / reference::kPanelRows;
  in.pool.parallel_for(heads * panels, [&](std::int64_t i) {
    const std::int64_t head = i / panels;
    const std::int64_t first = i % panels * reference::kPanelRows;
    reference::product_of_panel({.x = qr.as<float>(),
                                 .x_stride = depth,
                                 .tokens = tokens,
                                 .depth = depth,
                                 .weight = w,
                                 .row_begin = (head + 1) * width - tail + first,
                                 .rows = std::min(reference::kPanelRows, tail - first),
                                 .y = tails.value.as<float>().subspan(static_cast<std::size_t>(head * tail + first)),
                                 .y_stride = heads * tail});
  });
  rotate_slack(in, rounded_bf16(in, std::move(tails)), call_positions(in.call), heads, slack);
  return slack;
}

Tensor kv_pre_slack(const BoundInputs& in) {
  return normed_and_rotated_slack(in, in.x, "wkv", "kv_norm", call_positions(in.call));
}

Tensor index_k_pre_slack(const BoundInputs& in) {
  return normed_and_rotated_slack(in, *in.value(kLatent), "idx_wk", "idx_k_norm", group_positions(in.role, in.call));
}

Tensor compress_pre_slack(const BoundInputs& in) {
  const Tensor latent = floats_of(in, *in.value(kLatent));
  Tensor slack(DType::f32, latent.shape());  // entries that do not turn are copies
  Tensor tails = row_tails(in, latent, in.config.head_dim, in.config.rope_dim);
  const Shape shape = tails.shape();
  rotate_slack(in, {.value = std::move(tails), .slack = Tensor(DType::f32, shape)}, group_positions(in.role, in.call),
               1, slack);
  return slack;
}

StageSlack og_slack(const BoundInputs& in) {
  const ModelConfig& c = in.config;
  const auto heads = static_cast<std::size_t>(c.n_heads);
  const auto width = static_cast<std::size_t>(c.head_dim);
  const auto turned = static_cast<std::size_t>(c.rope_dim);
  const auto groups = static_cast<std::size_t>(c.groups);
  const auto rank = static_cast<std::size_t>(c.o_rank);
  const std::size_t depth = heads / groups * width;
  const auto& norms = in.norms.of("wo_a", in.pool);
  const SumSlack sum_slack(static_cast<std::int64_t>(depth));
  StageSlack slack{.values = Tensor::unwritten(DType::f32, {in.call.tokens, c.groups * c.o_rank}),
                   .moves = std::vector<float>(static_cast<std::size_t>(in.call.tokens))};
  std::vector<std::vector<std::vector<Move>>> found(static_cast<std::size_t>(in.call.tokens));  // by token and group
  in.pool.parallel_for(in.call.tokens, [&](std::int64_t t) {
    const auto token = static_cast<std::size_t>(t);
    const auto stored = in.value(kO)->as<Bf16>().subspan(token * heads * width, heads * width);
    thread_local std::vector<float> back;
    back.resize(stored.size());
    std::transform(stored.begin(), stored.end(), back.begin(), [](Bf16 v) { return to_float(v); });
    const reference::RotaryPhase phase = phase_at(in, in.call.start_pos + t);
    std::vector<float> turns(turned);
    found[token].resize(groups);
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t first = (h + 1) * width - turned;
      const auto tail = std::span(back).subspan(first, turned);
      for (std::size_t k = 0; k < turned; k += 2) {
        turns[k] = turns[k + 1] = turn_slack(tail[k], tail[k + 1]);
      }
      reference::rotate_back(tail, phase);
      for (std::size_t k = 0; k < turned; ++k) {
        if (const float spread = rounding_spread(tail[k], turns[k]); spread != 0) {
          const std::size_t entry = first + k;
          found[token][entry / depth].push_back({.token = token, .column = entry % depth, .spread = spread});
        }
      }
    }
    const auto out = slack.values.as<float>().subspan(token * groups * rank, groups * rank);
    for (std::size_t o = 0; o < out.size(); o += rank) {
      const float norm = norm2(std::span(back).subspan(o / rank * depth, depth));
      std::transform(norms.begin() + static_cast<std::ptrdiff_t>(o),
                     norms.begin() + static_cast<std::ptrdiff_t>(o + rank), out.subspan(o, rank).begin(),
                     [&](float norm_w) { return sum_slack(norm_w, norm); });
    }
  });
  std::vector<std::vector<Move>> by_group(groups);
  for (const auto& of_token : found) {
    for (std::size_t g = 0; g < groups; ++g) {
      by_group[g].insert(by_group[g].end(), of_token[g].begin(), of_token[g].end());
    }
  }
  add_moves(in, by_group, slack);
  return slack;
}

Tensor out_slack(const BoundInputs& in) {
  return product_slack(in, activation_for(in, *in.value(kOg), "wo_b"), "wo_b");
}

}  // namespace attndiff::deepseek_v41
