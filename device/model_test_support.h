#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/gpu.h"
#include "reference/contract/config.h"
#include "reference/contract/families.h"
#include "reference/contract/weights.h"
#include "reference/deepseek_v41/geometry.h"

namespace attndiff::device {

/// Skips, with the reason, where the GPU is not usable: never a pass.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = unavailable_reason(0)) {
      GTEST_SKIP() << *reason;
    }
  }
};

inline ModelConfig micro_config() {
  ModelConfig c = deepseek_v41::micro_config();
  c.max_seq = 128;
  c.max_tokens = 40;
  return c;
}

inline std::vector<LayerRole> micro_layers() {
  return {{.layer_id = 0, .ratio = 0},
          {.layer_id = 1, .ratio = 2, .is_kv_source = true, .is_index_source = true},
          {.layer_id = 2, .ratio = 2},
          {.layer_id = 3, .ratio = 1, .is_kv_source = true, .is_index_source = true, .is_candidate_source = true},
          {.layer_id = 4, .ratio = 1, .is_index_source = true, .uses_candidates = true},
          {.layer_id = 5, .ratio = 1, .uses_candidates = true}};
}

inline Tensor random_tensor(DType dtype, const Shape& shape, unsigned seed, float mean, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(mean, deviation);
  Tensor t(DType::f32, shape);
  for (float& v : t.as<float>()) {
    v = normal(generator);
  }
  return dtype == DType::bf16 ? to_bf16(t) : t;
}

inline bool is_norm(const std::string& name) { return name.find("norm") != std::string::npos; }

inline LayerWeights random_weights(const ModelConfig& config, const LayerRole& role, unsigned seed) {
  LayerWeights weights;
  for (const WeightSpec& spec : family_named(config.family).weights(config, role)) {
    const float depth = spec.shape.rank() > 1 ? static_cast<float>(spec.shape[1]) : 1.0F;
    const float mean = is_norm(spec.name) ? 1.0F : 0.0F;
    const float deviation = is_norm(spec.name) ? 0.1F : 1.0F / std::sqrt(depth);
    weights.set(spec.name, {.values = random_tensor(spec.dtype, spec.shape, seed++, mean, deviation), .scales = {}});
  }
  return weights;
}

inline Tensor random_input(const ModelConfig& config, const CallShape& call, std::size_t layer) {
  const auto seed = static_cast<unsigned>(1000 * call.start_pos + 10 * static_cast<std::int64_t>(layer) + 7);
  return random_tensor(DType::bf16, {call.tokens, config.dim}, seed, 0.0F, 1.0F);
}

/// A prefill and the decode steps after it.
inline std::vector<CallShape> calls(std::int64_t prefill, std::int64_t decodes) {
  std::vector<CallShape> steps{{.tokens = prefill, .start_pos = 0}};
  for (std::int64_t i = 0; i < decodes; ++i) {
    steps.push_back({.tokens = 1, .start_pos = prefill + i});
  }
  return steps;
}

}  // namespace attndiff::device
