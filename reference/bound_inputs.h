#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/plan.h"
#include "reference/contract/state.h"
#include "reference/contract/weights.h"
#include "reference/thread_pool.h"

namespace attndiff {

/// 2-norms of the rows of a layer's weights, computed once for each weight.
class WeightNorms {
 public:
  explicit WeightNorms(std::shared_ptr<const LayerWeights> weights) : weights_(std::move(weights)) {}

  [[nodiscard]] const LayerWeights& weights() const noexcept { return *weights_; }
  [[nodiscard]] const std::shared_ptr<const LayerWeights>& owner() const noexcept { return weights_; }
  [[nodiscard]] const std::vector<float>& of(const std::string& name, reference::ThreadPool& pool);

 private:
  std::shared_ptr<const LayerWeights> weights_;
  std::map<std::string, std::vector<float>> norms_;
};

/// What a stage's bound is computed from: the inputs that both sides were given.
struct BoundInputs {
  const ModelConfig& config;
  const LayerRole& role;
  CallShape call;
  const Tensor& x;                              ///< bf16 [tokens, dim]
  WeightNorms& norms;                           ///< with the layer's weights
  std::function<const Tensor*(int)> value;      ///< the reference's stage, as given to the candidate
  std::function<const Tensor*(int)> unrounded;  ///< the reference's stage before its last rounding, f32
  std::shared_ptr<const RowCache> index_keys;   ///< what the slot index_k held when scores were made
  Arithmetic arithmetic;                        ///< what the candidate declares beyond float32 sums
  reference::ThreadPool& pool;
};

}  // namespace attndiff
