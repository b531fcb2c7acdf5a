#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/deepseek_v41/bound_parts.h"

namespace attndiff::deepseek_v41 {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Floats = Eigen::Map<const RowMajor>;

/// The rows one query attends, as float32 [count, width].
RowMajor attended_rows(const Tensor& rows, std::span<const std::int32_t> idx, std::int64_t width) {
  std::vector<std::int32_t> present;
  std::copy_if(idx.begin(), idx.end(), std::back_inserter(present), [](std::int32_t i) { return i >= 0; });
  RowMajor gathered(static_cast<Eigen::Index>(present.size()), width);
  for (std::size_t j = 0; j < present.size(); ++j) {
    const auto row = rows.as<Bf16>().subspan(static_cast<std::size_t>(present[j]) * static_cast<std::size_t>(width),
                                             static_cast<std::size_t>(width));
    std::transform(row.begin(), row.end(), gathered.data() + static_cast<std::int64_t>(j) * width,
                   [](Bf16 v) { return to_float(v); });
  }
  return gathered;
}

/// Turns one head's scores into the squares of its softmax weights over the largest of them, which is returned: below a
/// large sink the squares themselves would underflow.
float squared_weights(std::span<float> s, float sink) {
  if (s.empty()) {
    return 0;
  }
  const float largest = *std::max_element(s.begin(), s.end());
  const float m = std::max(largest, sink);
  float den = std::exp(sink - m);
  for (float& v : s) {
    den += std::exp(v - m);
    const float relative = std::exp(v - largest);
    v = relative * relative;
  }
  return std::exp(largest - m) / den;
}

/// How far a softmax weight may be off, relative to itself: the score's sum, its scaling, the subtraction of the
/// maximum, the exponential and the division.
float weight_slack(std::int64_t width, float score_size, float sink) {
  constexpr float kRoundings = 8.0F;
  return kSumFactor * std::sqrt(static_cast<float>(width)) * kUnitRoundoff * score_size +
         (4 * score_size + std::fabs(sink) + kRoundings) * kUnitRoundoff;
}

}  // namespace

Tensor attention_slack(const BoundInputs& in, StageId stage) {
  const ModelConfig& c = in.config;
  const Tensor& q = *in.value(kQ);
  const Tensor& idx = *in.value(kIdx);
  const auto sink = in.norms.weights().at("sink").values.as<float>();
  const auto heads = static_cast<std::size_t>(c.n_heads);
  const auto width = static_cast<std::size_t>(c.head_dim);
  const auto columns = static_cast<std::size_t>(idx.shape()[1]);
  const auto scale = static_cast<float>(std::pow(static_cast<double>(c.head_dim), -0.5));
  Tensor slack(DType::f32, stage == kLse ? Shape{in.call.tokens, c.n_heads} : q.shape());
  in.pool.parallel_for(in.call.tokens, [&](std::int64_t t) {
    const auto at = static_cast<std::size_t>(t);
    const RowMajor rows =
        attended_rows(*in.value(kRows), idx.as<std::int32_t>().subspan(at * columns, columns), c.head_dim);
    const auto stored = q.as<Bf16>().subspan(at * heads * width, heads * width);
    std::vector<float> query(stored.size());
    std::transform(stored.begin(), stored.end(), query.begin(), [](Bf16 v) { return to_float(v); });
    RowMajor squares = Floats(query.data(), c.n_heads, c.head_dim) * rows.transpose() * scale;
    std::vector<float> largest_weight(heads);
    for (std::size_t h = 0; h < heads; ++h) {
      largest_weight[h] = squared_weights(
          {squares.data() + static_cast<std::int64_t>(h) * rows.rows(), static_cast<std::size_t>(rows.rows())},
          sink[h]);
    }
    const RowMajor moved = (squares * rows.cwiseAbs2()).cwiseSqrt();  // of sum p_j v_j when each p_j moves by itself
    const float largest_row = rows.rows() == 0 ? 0.0F : std::sqrt(rows.rowwise().squaredNorm().maxCoeff());
    const float terms = kSumFactor * std::sqrt(static_cast<float>(rows.rows() + 1)) * kUnitRoundoff;
    for (std::size_t h = 0; h < heads; ++h) {
      const auto head = static_cast<Eigen::Index>(h);
      const float score_size = norm2(std::span(query).subspan(h * width, width)) * largest_row * scale;
      const float relative = 2 * weight_slack(c.head_dim, score_size, sink[h]);
      if (stage == kLse) {
        const float lse = in.value(kLse)->as<float>()[at * heads + h];
        slack.as<float>()[at * heads + h] = relative + terms + 4 * kUnitRoundoff * std::fabs(lse);
        continue;
      }
      // A declared rounding of the weights to bf16, which has 8 significant bits, moves each by up to 2^-8 of itself;
      // combining split sums rescales each part once.
      const float declared = in.arithmetic.bf16_softmax_weights ? 0x1p-8F : 0.0F;
      const float splits = 4 * kUnitRoundoff * static_cast<float>(in.arithmetic.attention_splits - 1);
      const float concentration = largest_weight[h] * std::sqrt(squares.row(head).sum());
      // A weight below 2^-126 keeps fewer bits: it, and its product with a row's entry, err by up to 2^-150 each.
      const float underflow = 0x1p-149F * (1 + largest_row) * static_cast<float>(rows.rows() + 1);
      const auto unrounded = in.unrounded(kO)->as<float>().subspan((at * heads + h) * width, width);
      for (std::size_t d = 0; d < width; ++d) {
        const float own = std::fabs(unrounded[d]);
        slack.as<float>()[(at * heads + h) * width + d] =
            (relative + 2 * declared + terms) *
                (largest_weight[h] * moved(head, static_cast<Eigen::Index>(d)) + concentration * own) +
            (4 * kUnitRoundoff + splits) * own + underflow;
      }
    }
  });
  return slack;
}

}  // namespace attndiff::deepseek_v41
