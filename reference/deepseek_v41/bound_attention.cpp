#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/deepseek_v41/bound_parts.h"

namespace attndiff::deepseek_v41 {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Floats = Eigen::Map<const RowMajor>;

/// What one query attends, as float32.
struct Attention {
  std::vector<float> query;  ///< [heads, width]
  RowMajor rows;             ///< [count, width]
};

/// Fills `a` for query `t`; memory is kept from one query to the next.
void gather(const BoundInputs& in, std::size_t t, Attention& a) {
  const auto width = static_cast<std::size_t>(in.config.head_dim);
  const auto size = static_cast<std::size_t>(in.config.n_heads) * width;
  const Tensor& idx = *in.value(kIdx);
  const auto columns = static_cast<std::size_t>(idx.shape()[1]);
  std::vector<std::int32_t> present;
  for (const std::int32_t i : idx.as<std::int32_t>().subspan(t * columns, columns)) {
    if (i >= 0) {
      present.push_back(i);
    }
  }
  const auto stored = in.value(kRows)->as<Bf16>();
  a.rows.resize(static_cast<Eigen::Index>(present.size()), in.config.head_dim);
  for (std::size_t j = 0; j < present.size(); ++j) {
    const auto row = stored.subspan(static_cast<std::size_t>(present[j]) * width, width);
    std::transform(row.begin(), row.end(), a.rows.data() + static_cast<std::int64_t>(j * width),
                   [](Bf16 v) { return to_float(v); });
  }
  const auto query = in.value(kQ)->as<Bf16>().subspan(t * size, size);
  a.query.resize(size);
  std::transform(query.begin(), query.end(), a.query.begin(), [](Bf16 v) { return to_float(v); });
}

/// Turns one head's scores into the squares of its softmax weights over the largest of them, which is returned: below a
/// large sink the squares themselves would underflow.
float squared_weights(Eigen::Ref<Eigen::ArrayXf> s, float sink) {
  if (s.size() == 0) {
    return 0;
  }
  const float largest = s.maxCoeff<Eigen::PropagateNaN>();
  const float m = std::max(largest, sink);
  s = (s - largest).exp();
  const float scale = std::exp(largest - m);
  const float weight = scale / (std::exp(sink - m) + scale * s.sum());
  s = s.square();
  return weight;
}

/// How far a softmax weight may be off, relative to itself: the score's sum, its scaling, the subtraction of the
/// maximum, the exponential and the division.
float weight_slack(std::int64_t width, float score_size, float sink) {
  constexpr float kRoundings = 8.0F;
  return kSumFactor * std::sqrt(static_cast<float>(width)) * kUnitRoundoff * score_size +
         (4 * score_size + std::fabs(sink) + kRoundings) * kUnitRoundoff;
}

/// 2-norm of the longest row.
float largest_norm(const RowMajor& rows) {
  return rows.rows() == 0 ? 0.0F : std::sqrt(rows.rowwise().squaredNorm().maxCoeff());
}

/// Twice the relative slack of a softmax weight of one head: its own, and what the others do to the denominator.
float relative_slack(const BoundInputs& in, const Attention& a, std::size_t head, float largest_row, float scale) {
  const auto width = static_cast<std::size_t>(in.config.head_dim);
  const float score_size = norm2(std::span(a.query).subspan(head * width, width)) * largest_row * scale;
  const auto sink = in.norms.weights().at("sink").values.as<float>();
  return 2 * weight_slack(in.config.head_dim, score_size, sink[head]);
}

float score_scale(const ModelConfig& c) { return static_cast<float>(std::pow(static_cast<double>(c.head_dim), -0.5)); }

/// The relative slack of a sum over the attended rows and the sink.
float sum_over_rows(const RowMajor& rows) {
  return kSumFactor * std::sqrt(static_cast<float>(rows.rows() + 1)) * kUnitRoundoff;
}

}  // namespace

Tensor lse_slack(const BoundInputs& in) {
  const auto heads = static_cast<std::size_t>(in.config.n_heads);
  const float scale = score_scale(in.config);
  Tensor slack = Tensor::unwritten(DType::f32, {in.call.tokens, in.config.n_heads});
  in.pool.parallel_for(in.call.tokens, [&](std::int64_t t) {
    thread_local Attention a;
    gather(in, static_cast<std::size_t>(t), a);
    const float largest_row = largest_norm(a.rows);
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = static_cast<std::size_t>(t) * heads + h;
      slack.as<float>()[at] = relative_slack(in, a, h, largest_row, scale) + sum_over_rows(a.rows) +
                              4 * kUnitRoundoff * std::fabs(in.value(kLse)->as<float>()[at]);
    }
  });
  return slack;
}

Tensor attention_slack(const BoundInputs& in) {
  const ModelConfig& c = in.config;
  const auto sink = in.norms.weights().at("sink").values.as<float>();
  const auto unrounded = in.unrounded(kO)->as<float>();
  const auto heads = static_cast<std::size_t>(c.n_heads);
  const float scale = score_scale(c);
  // A declared rounding of the weights to bf16, which has 8 significant bits, moves each by up to 2^-8 of itself;
  // combining split sums rescales each part once.
  const float declared = in.arithmetic.bf16_softmax_weights ? 0x1p-8F : 0.0F;
  const float splits = 4 * kUnitRoundoff * static_cast<float>(in.arithmetic.attention_splits - 1);
  Tensor slack = Tensor::unwritten(DType::f32, in.value(kQ)->shape());
  in.pool.parallel_for(in.call.tokens, [&](std::int64_t t) {
    thread_local Attention a;
    thread_local RowMajor squares;
    thread_local RowMajor moved;  // of sum p_j v_j when each p_j moves by itself
    gather(in, static_cast<std::size_t>(t), a);
    const float largest_row = largest_norm(a.rows);
    const float terms = sum_over_rows(a.rows);
    squares.noalias() = Floats(a.query.data(), c.n_heads, c.head_dim) * a.rows.transpose();
    squares *= scale;
    std::vector<float> largest_weight(heads);
    for (std::size_t h = 0; h < heads; ++h) {
      const Eigen::Map<Eigen::ArrayXf> scores(squares.data() + static_cast<std::int64_t>(h) * squares.cols(),
                                              squares.cols());
      largest_weight[h] = squared_weights(scores, sink[h]);
    }
    a.rows = a.rows.cwiseAbs2();
    moved.noalias() = squares * a.rows;
    for (std::size_t h = 0; h < heads; ++h) {
      const auto head = static_cast<Eigen::Index>(h);
      const float weights = relative_slack(in, a, h, largest_row, scale) + 2 * declared + terms;
      const float concentration = largest_weight[h] * std::sqrt(squares.row(head).sum());
      // A weight below 2^-126 keeps fewer bits: it, and its product with a row's entry, err by up to 2^-150 each.
      const float underflow = 0x1p-149F * (1 + largest_row) * static_cast<float>(a.rows.rows() + 1);
      const std::int64_t at = (t * c.n_heads + head) * c.head_dim;
      const Eigen::Map<const Eigen::ArrayXf> o(unrounded.data() + at, c.head_dim);
      Eigen::Map<Eigen::ArrayXf>(slack.as<float>().data() + at, c.head_dim) =
          weights * (largest_weight[h] * moved.row(head).transpose().array().sqrt() + concentration * o.abs()) +
          (4 * kUnitRoundoff + splits) * o.abs() + underflow;
    }
  });
  return slack;
}

}  // namespace attndiff::deepseek_v41
