#include "reference/compressor.h"

#include <cmath>

namespace attndiff::reference {

void pool_group(std::span<const float> k, std::span<const float> g, std::int64_t ratio, std::span<float> out) noexcept {
  const std::size_t width = out.size();
  const auto members = static_cast<std::size_t>(ratio);
  for (std::size_t d = 0; d < width; ++d) {
    float largest = g[d];
    for (std::size_t m = 1; m < members; ++m) {
      const float v = g[m * width + d];
      largest = (std::isnan(v) || v > largest) ? v : largest;
    }
    float denominator = 0;
    for (std::size_t m = 0; m < members; ++m) {
      denominator += std::exp(g[m * width + d] - largest);
    }
    float sum = 0;
    for (std::size_t m = 0; m < members; ++m) {
      sum += std::exp(g[m * width + d] - largest) / denominator * k[m * width + d];
    }
    out[d] = sum;
  }
}

std::int64_t group_position(const LayerRole& role, const CallShape& call, std::int64_t g) noexcept {
  return call.prefill() ? g * role.ratio : call.start_pos + 1 - role.ratio;
}

std::int64_t visible_positions(const LayerRole& role, const CallShape& call, std::int64_t t) noexcept {
  return call.prefill() ? (t + 1) / role.ratio : (call.start_pos + call.tokens) / role.ratio;
}

}  // namespace attndiff::reference
