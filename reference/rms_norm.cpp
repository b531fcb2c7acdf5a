#include "reference/rms_norm.h"

#include <cmath>

namespace attndiff::reference {

void rms_norm(std::span<const float> x, std::span<const float> w, float eps, std::span<float> out) noexcept {
  double sum = 0;
  for (const float v : x) {
    sum += static_cast<double>(v) * v;
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(x.size()));
  const float inverse_rms = 1.0F / std::sqrt(mean + eps);
  for (std::size_t d = 0; d < x.size(); ++d) {
    out[d] = w[d] * (x[d] * inverse_rms);
  }
}

}  // namespace attndiff::reference
