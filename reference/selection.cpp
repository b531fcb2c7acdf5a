#include "reference/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attndiff::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Maximum that a NaN does not escape, as torch.amax behaves.
float amax(std::span<const float> values) noexcept {
  float largest = -kInfinity;
  for (const float v : values) {
    if (std::isnan(v)) {
      return v;
    }
    largest = std::max(largest, v);
  }
  return largest;
}

}  // namespace

void candidate_mask_row(std::span<const float> scores, std::int64_t visible, const ModelConfig& config,
                        std::span<std::uint8_t> mask, const TopkSet& topk) {
  const auto block = static_cast<std::size_t>(config.cand_block);
  const std::size_t blocks = (scores.size() + block - 1) / block;
  std::vector<float> best(blocks);
  for (std::size_t b = 0; b < blocks; ++b) {
    best[b] = amax(scores.subspan(b * block, std::min(block, scores.size() - b * block)));
  }
  if (visible > 0) {
    best[static_cast<std::size_t>((visible - 1) / config.cand_block)] = kInfinity;
  }
  std::fill(mask.begin(), mask.end(), std::uint8_t{0});
  const auto kept = topk(best, std::min(config.cand_topk_blocks, static_cast<std::int64_t>(blocks)));
  for (const std::int32_t b : kept) {
    const auto at = static_cast<std::size_t>(b);
    if (best[at] > -kInfinity) {
      const auto part = mask.subspan(at * block, std::min(block, mask.size() - at * block));
      std::fill(part.begin(), part.end(), std::uint8_t{1});
    }
  }
}

void select_row(std::span<const float> scores, std::int64_t visible, std::span<std::int32_t> picks,
                const TopkSet& topk) {
  const auto set = topk(scores, static_cast<std::int64_t>(picks.size()));
  std::transform(set.begin(), set.end(), picks.begin(), [&](std::int32_t p) { return p >= visible ? -1 : p; });
}

std::int32_t offset_pick(std::int32_t pick, std::int64_t offset) noexcept {
  return pick < 0 ? pick : static_cast<std::int32_t>(pick + offset);
}

}  // namespace attndiff::reference
