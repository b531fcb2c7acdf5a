#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/observer.h"
#include "reference/deepseek_v41/forward.h"
#include "reference/deepseek_v41/sequence.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff::deepseek_v41 {

inline constexpr std::int64_t kTestTokens = 40;  ///< tokens that every layer of a test model has inputs for

/// A configuration in which every width differs and every threshold is crossed within a few tokens. K of wo_b, 48, is
/// no multiple of the fp8 block.
inline ModelConfig small_config() {
  ModelConfig c;
  c.dim = 96;
  c.n_heads = 4;
  c.head_dim = 64;
  c.rope_dim = 16;
  c.q_rank = 32;
  c.o_rank = 24;
  c.groups = 2;
  c.window = 4;
  c.index_heads = 3;
  c.index_head_dim = 32;
  c.index_topk = 3;
  c.cand_topk_blocks = 2;
  c.cand_block = 2;
  c.max_seq = 48;
  c.max_tokens = 24;
  c.orig_seq = 16;
  c.eps = 1e-20;
  c.rope_theta = 10000;
  c.compress_rope_theta = 40000;
  c.rope_factor = 16;
  c.beta_fast = 32;
  c.beta_slow = 1;
  return c;
}

/// A model with random weights and, for each layer, the inputs of a sequence.
struct TestModel {
  ModelConfig config;
  std::vector<LayerRole> roles;
  std::vector<LayerWeights> weights;
  std::vector<Tensor> x;  ///< bf16 [kTestTokens, dim] of each layer
};

inline Tensor random_tensor(std::mt19937& engine, DType dtype, const Shape& shape, float mean, float deviation) {
  std::normal_distribution<float> normal(mean, deviation);
  Tensor t(DType::f32, shape);
  for (float& v : t.as<float>()) {
    v = normal(engine);
  }
  return dtype == DType::bf16 ? to_bf16(t) : t;
}

inline TestModel random_model(const ModelConfig& config, std::vector<LayerRole> roles, unsigned seed = 1) {
  TestModel model{.config = config, .roles = std::move(roles), .weights = {}, .x = {}};
  std::mt19937 engine(seed);
  for (const LayerRole& role : model.roles) {
    LayerWeights weights;
    for (const WeightSpec& spec : family().weights(config, role)) {
      const bool matrix = spec.shape.rank() == 2;
      const bool norm = std::string(spec.name).ends_with("_norm");
      const float deviation = matrix ? 1.0F / std::sqrt(static_cast<float>(spec.shape[1])) : 0.2F;
      weights.set(spec.name, {.values = random_tensor(engine, spec.dtype, spec.shape, norm ? 1.0F : 0.0F, deviation),
                              .scales = {}});
    }
    model.weights.push_back(std::move(weights));
    model.x.push_back(random_tensor(engine, DType::bf16, {kTestTokens, config.dim}, 0, 1));
  }
  return model;
}

/// One of each kind of layer: window only, ratio 2 source and reader, ratio 3 source, ratio 1 candidate source, an
/// index source with candidates and a reader.
inline std::vector<LayerRole> every_kind() {
  return {{.layer_id = 0},
          {.layer_id = 1, .ratio = 2, .is_kv_source = true, .is_index_source = true},
          {.layer_id = 2, .ratio = 2},
          {.layer_id = 3, .ratio = 3, .is_kv_source = true, .is_index_source = true},
          {.layer_id = 4, .ratio = 1, .is_kv_source = true, .is_index_source = true, .is_candidate_source = true},
          {.layer_id = 5, .ratio = 1, .is_index_source = true, .uses_candidates = true},
          {.layer_id = 6, .ratio = 1, .uses_candidates = true}};
}

/// Copies every stage it is offered, after changing those it was told to.
class Recorder final : public Observer {
 public:
  Recorder() = default;
  Recorder(StageId replaced, std::function<void(Tensor&)> change) : replaced_(replaced), change_(std::move(change)) {}

  [[nodiscard]] Interest interest(const LayerCall&, const StageInfo& stage) override {
    return Interest::read | Interest::unrounded | (stage.id == replaced_ ? Interest::replace : Interest::nothing);
  }

  void on_stage(const LayerCall&, StageView& view, Stream) override {
    Tensor value = copy_of(view.value);
    if (view.stage.id == replaced_) {
      change_(value);
      std::copy_n(value.raw(), value.bytes(), static_cast<std::byte*>(view.value.data));
    }
    order.emplace_back(view.stage.name);
    shapes.push_back(view.value.shape);
    if (view.unrounded.data != nullptr) {
      unrounded.insert_or_assign(static_cast<StageId>(view.stage.id), copy_of(view.unrounded));
    }
    stages.insert_or_assign(static_cast<StageId>(view.stage.id), std::move(value));
  }

  [[nodiscard]] std::vector<float> values(StageId id) const {
    const Tensor floats = to_f32(stages.at(id));
    return {floats.as<float>().begin(), floats.as<float>().end()};
  }

  std::vector<std::string> order;
  std::vector<Shape> shapes;
  std::map<StageId, Tensor> stages;
  std::map<StageId, Tensor> unrounded;

 private:
  int replaced_ = -1;
  std::function<void(Tensor&)> change_;
};

/// One sequence over a test model.
class Session {
 public:
  explicit Session(const TestModel& model, int threads = 1)
      : model_(model), pool_(threads), engine_{model.config, steps_, pool_}, stack_(engine_, model.roles) {}

  /// The layer's own inputs of the call's tokens; positions beyond the inputs wrap around.
  [[nodiscard]] Tensor input(std::size_t layer, const CallShape& call) const {
    Tensor x(DType::bf16, {call.tokens, model_.config.dim});
    const auto width = static_cast<std::size_t>(model_.config.dim);
    for (std::int64_t t = 0; t < call.tokens; ++t) {
      const auto from = static_cast<std::size_t>((call.start_pos + t) % kTestTokens) * width;
      const auto row = model_.x[layer].as<Bf16>().subspan(from, width);
      std::copy(row.begin(), row.end(), x.as<Bf16>().subspan(static_cast<std::size_t>(t) * width).begin());
    }
    return x;
  }

  LayerResult run(std::size_t layer, const CallShape& call, Observer& observer, const SharedInputs* shared = nullptr) {
    return stack_.forward(layer, model_.weights[layer], call, 0, input(layer, call), shared, observer);
  }
  LayerResult run(std::size_t layer, const CallShape& call, const SharedInputs* shared = nullptr) {
    NullObserver nothing;
    return run(layer, call, nothing, shared);
  }
  /// All layers in order.
  void step(const CallShape& call) {
    for (std::size_t layer = 0; layer < model_.roles.size(); ++layer) {
      (void)run(layer, call);
    }
  }

  [[nodiscard]] LayerStack& stack() noexcept { return stack_; }

 private:
  const TestModel& model_;
  Steps steps_;
  reference::ThreadPool pool_;
  Engine engine_;
  LayerStack stack_;
};

inline CallShape prefill(std::int64_t tokens) { return {.tokens = tokens, .start_pos = 0}; }
inline CallShape decode(std::int64_t position) { return {.tokens = 1, .start_pos = position}; }

inline bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::equal(a.raw(), a.raw() + a.bytes(), b.raw());
}

}  // namespace attndiff::deepseek_v41
