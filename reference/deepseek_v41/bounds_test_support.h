#pragma once

#include <map>
#include <memory>
#include <optional>

#include "reference/bound_inputs.h"
#include "reference/deepseek_v41/model_test_support.h"

namespace attndiff::deepseek_v41 {

inline constexpr std::int64_t kTokens = 9;

/// One layer's prefill from position 0, and the bounds of what it computed.
class LayerBounds {
 public:
  LayerBounds(const LayerRole& role, int threads)
      : model_(random_model(small_config(), {role})), session_(model_), pool_(threads) {
    session_.run(0, prefill(kTokens), seen_);
    x_ = session_.input(0, prefill(kTokens));
    norms_ = std::make_unique<WeightNorms>(std::make_shared<const LayerWeights>(model_.weights[0]));
  }

  [[nodiscard]] std::optional<StageSlack> of(int stage) {
    const auto find = [](const std::map<StageId, Tensor>& in, int id) {
      const auto found = in.find(static_cast<StageId>(id));
      return found == in.end() ? nullptr : &found->second;
    };
    const auto& keys = session_.stack().slots().index_k;
    const BoundInputs inputs{.config = model_.config,
                             .role = model_.roles[0],
                             .call = prefill(kTokens),
                             .x = x_,
                             .norms = *norms_,
                             .value = [&](int id) -> const Tensor* { return find(seen_.stages, id); },
                             .unrounded = [&](int id) -> const Tensor* { return find(seen_.unrounded, id); },
                             .index_keys = keys ? keys->value : nullptr,
                             .arithmetic = {},
                             .pool = pool_};
    return family().slack(stage, inputs);
  }

  [[nodiscard]] Recorder& seen() { return seen_; }
  [[nodiscard]] const Tensor& x() const { return x_; }
  [[nodiscard]] const TestModel& model() const { return model_; }

 private:
  TestModel model_;
  Session session_;
  reference::ThreadPool pool_;
  Recorder seen_;
  Tensor x_;
  std::unique_ptr<WeightNorms> norms_;
};

inline LayerRole source_role(std::int64_t ratio) {
  return {.layer_id = 1, .ratio = ratio, .is_kv_source = true, .is_index_source = true};
}

}  // namespace attndiff::deepseek_v41
