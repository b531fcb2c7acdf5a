#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "reference/contract/bfloat16.h"
#include "reference/deepseek_v41/bound_parts.h"
#include "reference/indexer.h"

namespace attndiff::deepseek_v41 {
namespace {

/// A row on the fp4_e8m0 grid: its 2-norm, and the largest power of two that divides every entry.
struct GridRow {
  float norm = 0;
  float unit = 0;  ///< 0 for a zero row
};

/// The largest power of two that divides a finite value; 0 for 0.
float lowest_bit(float v) noexcept {
  constexpr unsigned kFraction = 23;
  constexpr std::uint32_t kExponents = 0xff;
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const std::uint32_t exponent = (bits >> kFraction) & kExponents;
  const std::uint32_t fraction = bits & ((1U << kFraction) - 1);
  const std::uint32_t mantissa = exponent == 0 ? fraction : fraction | (1U << kFraction);
  if (mantissa == 0) {
    return 0.0F;
  }
  constexpr int kUnitExponent = -150;  // of the last fraction bit where the stored exponent is 0; 1 gives the same
  return std::ldexp(1.0F, kUnitExponent + std::max(1, static_cast<int>(exponent)) + std::countr_zero(mantissa));
}

std::vector<GridRow> grid_rows(const BoundInputs& in, std::span<const float> values, std::size_t width) {
  std::vector<GridRow> rows(values.size() / width);
  constexpr std::int64_t kRowsAtOnce = 256;
  in.pool.parallel_ranges(static_cast<std::int64_t>(rows.size()), kRowsAtOnce,
                          [&](std::int64_t begin, std::int64_t end) {
                            for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
                              const auto row = values.subspan(r * width, width);
                              rows[r].norm = norm2(row);
                              for (const float v : row) {
                                const float unit = lowest_bit(v);
                                if (unit > 0 && (rows[r].unit == 0 || unit < rows[r].unit)) {
                                  rows[r].unit = unit;
                                }
                              }
                            }
                          });
  return rows;
}

/// A dot whose partial sums, all multiples of the units' product, stay below 2^24 of them is exact in any order.
bool exact_dot(const GridRow& q, const GridRow& key) noexcept {
  constexpr float kExactIntegers = 0x1p24F;
  return q.norm * key.norm <= kExactIntegers * q.unit * key.unit;
}

}  // namespace

Tensor index_w_slack(const BoundInputs& in) {
  const float scale = reference::index_weight_scale(in.config);
  Bounded w = rounded_bf16(in, bounded_product(in, activation_for(in, in.x, "idx_weights_proj"), "idx_weights_proj"));
  const auto values = w.value.as<float>();
  const auto slack = w.slack.as<float>();
  for (std::size_t i = 0; i < slack.size(); ++i) {
    slack[i] = scale * slack[i] + 2 * kUnitRoundoff * std::fabs(scale * values[i]);
  }
  return std::move(w.slack);
}

Tensor index_score_slack(const BoundInputs& in) {
  const auto heads = static_cast<std::size_t>(in.config.index_heads);
  const auto width = static_cast<std::size_t>(in.config.index_head_dim);
  const std::int64_t len = compressed_length(in.role, in.call);
  Tensor stored(DType::bf16, {len, in.config.index_head_dim});
  in.index_keys->read(len, stored.as<Bf16>());
  const Tensor keys = floats_of(in, stored);
  const Tensor q = floats_of(in, *in.value(kIndexQ));
  const Tensor w = floats_of(in, *in.value(kIndexW));
  const SumSlack sum_slack(in.config.index_head_dim);
  const auto key_rows = grid_rows(in, keys.as<float>(), width);
  const auto query_rows = grid_rows(in, q.as<float>(), width);
  Tensor slack(DType::f32, {in.call.tokens, len});
  in.pool.parallel_for(in.call.tokens, [&](std::int64_t t) {
    const auto at = static_cast<std::size_t>(t);
    const auto weights = w.as<float>().subspan(at * heads, heads);
    float weighted_norm = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      weighted_norm += std::fabs(weights[h]) * query_rows[at * heads + h].norm;
    }
    for (std::size_t p = 0; p < key_rows.size(); ++p) {
      // The sum over heads, its terms bounded by |w_h| |q_h| |key|.
      float sum = kSumFactor * std::sqrt(static_cast<float>(heads)) * kUnitRoundoff * weighted_norm * key_rows[p].norm;
      for (std::size_t h = 0; h < heads; ++h) {
        const GridRow& query = query_rows[at * heads + h];
        if (exact_dot(query, key_rows[p])) {
          continue;
        }
        const auto a = q.as<float>().subspan((at * heads + h) * width, width);
        const auto b = keys.as<float>().subspan(p * width, width);
        const auto dot = static_cast<float>(std::inner_product(a.begin(), a.end(), b.begin(), 0.0));
        const float spread = rounding_spread(dot, sum_slack(query.norm, key_rows[p].norm));
        // The product with the weight is rounded again, which can add a unit of its own.
        sum += std::fabs(weights[h]) * spread + (spread > 0 ? static_cast<float>(bf16_unit(dot * weights[h])) : 0.0F);
      }
      slack.as<float>()[at * key_rows.size() + p] = sum;
    }
  });
  return slack;
}

}  // namespace attndiff::deepseek_v41
