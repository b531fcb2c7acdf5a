#include "reference/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attndiff::reference {
namespace {

/// YaRN's dimension at which `rotations` full turns fit into the original sequence length.
double correction_dimension(const ModelConfig& c, double rotations) {
  return static_cast<double>(c.rope_dim) *
         std::log(static_cast<double>(c.orig_seq) / (2.0 * std::numbers::pi * rotations)) /
         (2.0 * std::log(c.compress_rope_theta));
}

void apply_yarn(const ModelConfig& c, std::vector<float>& f) {
  constexpr double kSmallestSpan = 1e-3;
  const double low = std::max(std::floor(correction_dimension(c, c.beta_fast)), 0.0);
  const double high = std::min(std::ceil(correction_dimension(c, c.beta_slow)), static_cast<double>(c.rope_dim - 1));
  const auto low_f = static_cast<float>(low);
  const auto span = static_cast<float>(std::max(high - low, kSmallestSpan));
  const auto factor = static_cast<float>(c.rope_factor);
  for (std::size_t k = 0; k < f.size(); ++k) {
    const float ramp = std::clamp((static_cast<float>(k) - low_f) / span, 0.0F, 1.0F);
    const float smooth = 1.0F - ramp;
    f[k] = f[k] / factor * (1.0F - smooth) + f[k] * smooth;
  }
}

}  // namespace

std::vector<float> rotary_frequencies(const ModelConfig& config, std::int64_t ratio) {
  const double theta = ratio == 0 ? config.rope_theta : config.compress_rope_theta;
  std::vector<float> f(static_cast<std::size_t>(config.rope_dim / 2));
  for (std::size_t k = 0; k < f.size(); ++k) {
    const float exponent = static_cast<float>(2 * k) / static_cast<float>(config.rope_dim);
    f[k] = 1.0F / static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
  }
  if (ratio > 0 && config.orig_seq > 0) {
    apply_yarn(config, f);
  }
  return f;
}

float rotary_angle(float frequency, std::int64_t position) noexcept { return static_cast<float>(position) * frequency; }

void rotate(std::span<float> tail, const RotaryPhase& phase) noexcept {
  for (std::size_t k = 0; k < phase.cos.size(); ++k) {
    const float re = tail[2 * k];
    const float im = tail[2 * k + 1];
    tail[2 * k] = re * phase.cos[k] - im * phase.sin[k];
    tail[2 * k + 1] = re * phase.sin[k] + im * phase.cos[k];
  }
}

void rotate_back(std::span<float> tail, const RotaryPhase& phase) noexcept {
  for (std::size_t k = 0; k < phase.cos.size(); ++k) {
    const float re = tail[2 * k];
    const float im = tail[2 * k + 1];
    tail[2 * k] = re * phase.cos[k] + im * phase.sin[k];
    tail[2 * k + 1] = im * phase.cos[k] - re * phase.sin[k];
  }
}

}  // namespace attndiff::reference
