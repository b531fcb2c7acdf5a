#include <cmath>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"
#include "reference/contract/bfloat16.h"
#include "reference/rotary.h"

namespace attndiff::mutants {
namespace {

using deepseek_v41::Steps;
using reference::RotaryPhase;

std::vector<float> yarn_everywhere(const ModelConfig& config, std::int64_t ratio) {
  if (ratio > 0) {
    return reference::rotary_frequencies(config, ratio);
  }
  ModelConfig plain = config;
  plain.compress_rope_theta = config.rope_theta;
  return reference::rotary_frequencies(plain, 1);
}

std::vector<float> yarn_nowhere(const ModelConfig& config, std::int64_t ratio) {
  ModelConfig plain = config;
  plain.orig_seq = 0;
  return reference::rotary_frequencies(plain, ratio);
}

std::vector<float> one_base(const ModelConfig& config, std::int64_t ratio) {
  ModelConfig same = config;
  same.compress_rope_theta = config.rope_theta;
  return reference::rotary_frequencies(same, ratio);
}

void rotate_halves(std::span<float> tail, const RotaryPhase& phase) {
  const std::size_t half = phase.cos.size();
  for (std::size_t k = 0; k < half; ++k) {
    const float re = tail[k];
    const float im = tail[half + k];
    tail[k] = re * phase.cos[k] - im * phase.sin[k];
    tail[half + k] = re * phase.sin[k] + im * phase.cos[k];
  }
}

float angle_in_double(float frequency, std::int64_t position) {
  const double product = static_cast<double>(position) * frequency;
  constexpr double kTurn = 6.283185307179586;
  return static_cast<float>(std::fmod(product, kTurn));
}

}  // namespace

std::vector<Mutant> rotary_mutants() {
  return {
      step_fault("yarn-on-a-window-only-layer", "window-only layers get YaRN's frequencies too", {"q", "micro"},
                 &Steps::frequencies, yarn_everywhere),
      step_fault("yarn-dropped", "compressed layers get plain frequencies", {"q", "micro"}, &Steps::frequencies,
                 yarn_nowhere),
      step_fault("one-rotary-base", "compressed layers use the window-only layers' base", {"q", "micro"},
                 &Steps::frequencies, one_base),
      step_fault("rotary-half-split", "entry k is paired with entry k + half instead of its neighbour", {"q", "micro"},
                 &Steps::rotate, rotate_halves),
      step_fault("rotary-sign", "queries and keys turn backwards", {"q", "micro"}, &Steps::rotate,
                 reference::rotate_back),
      step_fault("position-in-bf16", "positions are rounded to bfloat16 before the angle is formed",
                 {"q", "far-window"}, &Steps::angle,
                 [](float frequency, std::int64_t position) {
                   return reference::rotary_angle(frequency,
                                                  static_cast<std::int64_t>(round_bf16(static_cast<float>(position))));
                 }),
      step_fault("angle-in-double", "the angle is a double product instead of the released model's float32 one",
                 {"q", "far-window"}, &Steps::angle, angle_in_double),
      step_fault("inverse-rotation-skipped", "o is projected without being turned back", {"og", "micro"},
                 &Steps::rotate_back, [](std::span<float>, const RotaryPhase&) {}),
      step_fault("inverse-rotation-forward", "o is turned once more instead of back", {"og", "micro"},
                 &Steps::rotate_back, reference::rotate),
  };
}

}  // namespace attndiff::mutants
