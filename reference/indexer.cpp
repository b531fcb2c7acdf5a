#include "reference/indexer.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/contract/bfloat16.h"

namespace attndiff::reference {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t kBlock = 256;  // keys per product: the dots of a block stay in the first-level caches

/// torch.relu: NaN passes through.
float rectified(float v) noexcept { return v < 0 ? 0.0F : v; }

}  // namespace

void index_scores(const IndexScoreArgs& a) {
  const auto heads = static_cast<std::int64_t>(a.w.size());
  const std::int64_t width = static_cast<std::int64_t>(a.q.size()) / heads;
  const auto len = static_cast<std::int64_t>(a.out.size());
  const Eigen::Map<const RowMajor> q(a.q.data(), heads, width);
  thread_local RowMajor dots;
  for (std::int64_t begin = 0; begin < len; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, len - begin);
    const Eigen::Map<const RowMajor> keys(a.keys.data() + begin * width, count, width);
    dots.noalias() = keys * q.transpose();
    for (std::int64_t p = 0; p < count; ++p) {
      float sum = 0;
      for (std::int64_t h = 0; h < heads; ++h) {
        sum += round_bf16(rectified(round_bf16(dots(p, h))) * a.w[static_cast<std::size_t>(h)]);
      }
      a.out[static_cast<std::size_t>(begin + p)] = sum;
    }
  }
}

float index_weight_scale(const ModelConfig& config) noexcept {
  return static_cast<float>(std::pow(static_cast<double>(config.index_head_dim), -0.5) *
                            std::pow(static_cast<double>(config.index_heads), -0.5));
}

float scaled_index_weight(float projected, float c) noexcept { return round_bf16(projected) * c; }

}  // namespace attndiff::reference
