#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/contract/config.h"

namespace attndiff::reference {

/// Rotary frequencies f_k, k < rope_dim / 2, in float32. Ratio 0 uses rope_theta plainly; ratio > 0 uses
/// compress_rope_theta and, with orig_seq > 0, YaRN's blend of interpolated and plain frequencies
/// (Su et al., "RoFormer", arXiv:2104.09864; Peng et al., "YaRN", arXiv:2309.00071, section 3.2).
[[nodiscard]] std::vector<float> rotary_frequencies(const ModelConfig& config, std::int64_t ratio);

/// The angle of one pair at one position: the float32 product, as the released model forms it.
[[nodiscard]] float rotary_angle(float frequency, std::int64_t position) noexcept;

/// Cosines and sines of a frequency table at one position, float32, computed in double for full range reduction.
struct RotaryPhase {
  std::vector<float> cos;
  std::vector<float> sin;
};

/// Turns adjacent pairs (2k, 2k + 1) of `tail` by their phases, in float32; the caller rounds.
/// `tail` has 2 * cos.size() entries.
void rotate(std::span<float> tail, const RotaryPhase& phase) noexcept;

/// The inverse rotation: by -sin.
void rotate_back(std::span<float> tail, const RotaryPhase& phase) noexcept;

}  // namespace attndiff::reference
