#pragma once

#include <span>

namespace attndiff::reference {

/// One row of rmsnorm before its rounding: out[d] = w[d] * (x[d] * rsqrt(mean(x^2) + eps)), in float32
/// (Zhang, Sennrich, "Root mean square layer normalization", NeurIPS 2019).
/// The mean is accumulated in double and rounded once: the specification leaves the order of the sum free.
void rms_norm(std::span<const float> x, std::span<const float> w, float eps, std::span<float> out) noexcept;

}  // namespace attndiff::reference
