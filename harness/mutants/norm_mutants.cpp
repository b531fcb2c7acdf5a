#include <algorithm>
#include <cmath>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"
#include "reference/contract/bfloat16.h"
#include "reference/rms_norm.h"

namespace attndiff::mutants {
namespace {

using deepseek_v41::Steps;
using Floats = std::span<const float>;

void usual_epsilon(Floats x, Floats w, float /*eps*/, std::span<float> out) {
  constexpr float kUsual = 1e-6F;
  reference::rms_norm(x, w, kUsual, out);
}

void sample_mean(Floats x, Floats w, float eps, std::span<float> out) {
  const auto n = static_cast<float>(x.size());
  const float correction = std::sqrt((n - 1) / n);
  reference::rms_norm(x, w, eps, out);
  std::transform(out.begin(), out.end(), out.begin(), [&](float v) { return v * correction; });
}

void centred(Floats x, Floats w, float eps, std::span<float> out) {
  float mean = 0;
  for (const float v : x) {
    mean += v / static_cast<float>(x.size());
  }
  std::vector<float> moved(x.begin(), x.end());
  std::transform(moved.begin(), moved.end(), moved.begin(), [&](float v) { return v - mean; });
  reference::rms_norm(moved, w, eps, out);
}

void rounded_before_weight(Floats x, Floats w, float eps, std::span<float> out) {
  const std::vector<float> ones(w.size(), 1.0F);
  reference::rms_norm(x, ones, eps, out);
  for (std::size_t d = 0; d < out.size(); ++d) {
    out[d] = w[d] * round_bf16(out[d]);
  }
}

}  // namespace

std::vector<Mutant> norm_mutants() {
  return {
      step_fault("norm-epsilon", "the norms add 1e-6 instead of the model's 1e-20", {"qr", "extreme-values"},
                 &Steps::rms_norm, usual_epsilon),
      step_fault("norm-sample-mean", "the mean square divides by n - 1", {"qr", "tiny"}, &Steps::rms_norm, sample_mean),
      step_fault("norm-centred", "the row's mean is subtracted, as in a layer norm", {"qr", "tiny"}, &Steps::rms_norm,
                 centred),
      step_fault("norm-rounded-twice", "the normalised row is rounded to bfloat16 before the weight multiplies it",
                 {"qr", "tiny"}, &Steps::rms_norm, rounded_before_weight),
  };
}

}  // namespace attndiff::mutants
