#include "reference/sparse_attention.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace attndiff::reference {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstFloats = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using Floats = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

/// A score beyond float32's range is infinite, as it is for every float32 implementation.
double as_float32_range(double s) noexcept {
  return std::fabs(s) > std::numeric_limits<float>::max() ? std::copysign(std::numeric_limits<double>::infinity(), s)
                                                          : s;
}

/// Turns one head's scores into softmax weights in place and returns lse.
double softmax_with_sink(float sink, std::span<double> s) noexcept {
  double m = sink;
  for (const double v : s) {
    m = (std::isnan(v) || v > m) ? v : m;
  }
  double den = std::exp(sink - m);
  for (double& v : s) {
    v = std::exp(v - m);
    den += v;
  }
  for (double& v : s) {
    v /= den;
  }
  return m + std::log(den);
}

}  // namespace

void AttendedRows::copy_row(std::int64_t index, std::span<float> out) const noexcept {
  const std::size_t width = out.size();
  std::size_t begin = static_cast<std::size_t>(index) * width;
  std::span<const Bf16> part = window;
  if (begin >= window.size()) {
    begin -= window.size();
    part = compressed;
  }
  if (begin + width > part.size()) {
    std::fill(out.begin(), out.end(), 0.0F);
    return;
  }
  const auto row = part.subspan(begin, width);
  std::transform(row.begin(), row.end(), out.begin(), [](Bf16 v) { return to_float(v); });
}

void sparse_attention(const SparseAttentionArgs& a) {
  const auto heads = static_cast<std::int64_t>(a.sink.size());
  const std::int64_t width = static_cast<std::int64_t>(a.q.size()) / heads;
  thread_local std::vector<std::int32_t> present;
  present.clear();
  std::copy_if(a.idx.begin(), a.idx.end(), std::back_inserter(present), [](std::int32_t i) { return i >= 0; });
  const auto count = static_cast<std::int64_t>(present.size());

  thread_local RowMajor gathered;
  thread_local RowMajor weights;
  thread_local std::vector<float> row;
  gathered.resize(count, width);
  row.resize(static_cast<std::size_t>(width));
  for (std::int64_t j = 0; j < count; ++j) {
    a.rows.copy_row(present[static_cast<std::size_t>(j)], row);
    std::copy(row.begin(), row.end(), gathered.data() + j * width);
  }
  weights.noalias() = ConstFloats(a.q.data(), heads, width).cast<double>() * gathered.transpose();
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::span<double> scores(weights.data() + h * count, static_cast<std::size_t>(count));
    for (double& s : scores) {
      s = as_float32_range(s * a.scale);
    }
    a.lse[static_cast<std::size_t>(h)] =
        static_cast<float>(softmax_with_sink(a.sink[static_cast<std::size_t>(h)], scores));
  }
  Floats(a.o.data(), heads, width) = (weights * gathered).cast<float>();
}

}  // namespace attndiff::reference
