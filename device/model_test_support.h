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

/// The specification's micro configuration: every dimension differs and every threshold lies below 40 tokens.
inline ModelConfig micro_config() {
  return {.dim = 160,
          .n_heads = 6,
          .head_dim = 96,
          .rope_dim = 32,
          .q_rank = 64,
          .o_rank = 40,
          .groups = 2,
          .window = 8,
          .index_heads = 3,
          .index_head_dim = 64,
          .index_topk = 5,
          .cand_topk_blocks = 2,
          .cand_block = 4,
          .max_seq = 128,
          .max_tokens = 40,
          .orig_seq = 64,
          .eps = 1e-20,
          .rope_theta = 10000,
          .compress_rope_theta = 160000,
          .rope_factor = 16,
          .beta_fast = 32,
          .beta_slow = 1};
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
