// A prefill of n tokens equals a prefill of n - 1 and a decode step, for n around every threshold of the micro
// configuration (first group, window 8, index_topk 5, two candidate blocks of 4), where each kv source keeps its keys
// apart. With the released rule it does not: at a decode step that completes no group, the ratio 2 source scores
// against the ratio 1 source's keys.

#include "device/prefill_decode_check.h"

#include <gtest/gtest.h>

#include <memory>

#include "device/model_test_support.h"
#include "device/sequence.h"
#include "reference/deepseek_v41/sequence.h"

namespace attndiff::device {
namespace {

using device::testing::compare_last_token;
using device::testing::ForwardLayer;
using device::testing::kSameToken;
using device::testing::LastToken;

constexpr std::int64_t kLongest = 24;
constexpr std::size_t kRatio2Source = 1;
constexpr std::size_t kRatio2Reader = 2;

struct Model {
  ModelConfig config = micro_config();
  std::vector<LayerRole> layers = micro_layers();
  std::vector<LayerWeights> weights;
  std::vector<Tensor> inputs;

  explicit Model(IndexKeyRule rule) {
    config.index_keys = rule;
    for (const LayerRole& role : layers) {
      const auto seed = static_cast<unsigned>(100 * role.layer_id + 1);
      weights.push_back(random_weights(config, role, seed));
      inputs.push_back(random_tensor(DType::bf16, {kLongest, config.dim}, seed + 50, 0.0F, 1.0F));
    }
  }
};

void expect_equal_where_keys_are_own(const Model& model, const ForwardLayer& forward) {
  for (std::int64_t n = 2; n <= kLongest; ++n) {
    for (const LastToken& last : compare_last_token(model.config, model.inputs, n, forward)) {
      EXPECT_LE(last.difference, kSameToken) << "n " << n << ", layer " << last.layer;
      EXPECT_TRUE(last.same_picks) << "n " << n << ", layer " << last.layer;
    }
  }
}

void expect_differs_where_no_group_is_completed(const Model& model, const ForwardLayer& forward) {
  int differing = 0;
  for (std::int64_t n = 2; n <= kLongest; ++n) {
    for (const LastToken& last : compare_last_token(model.config, model.inputs, n, forward)) {
      const bool ratio2 = last.layer == kRatio2Source || last.layer == kRatio2Reader;
      const bool other_keys = ratio2 && n % 2 == 1;
      if (!other_keys) {
        EXPECT_LE(last.difference, kSameToken) << "n " << n << ", layer " << last.layer;
        EXPECT_TRUE(last.same_picks) << "n " << n << ", layer " << last.layer;
      } else if (!last.same_picks) {
        ++differing;
      }
    }
  }
  EXPECT_GT(differing, 0);
}

/// The CPU reference.
class OnCpu {
 public:
  explicit OnCpu(const Model& model)
      : model_(model), engine_{model.config, steps_, pool_}, stack_(engine_, model.layers) {}

  LayerResult operator()(std::size_t layer, const CallShape& call, const Tensor& x) {
    NullObserver none;
    return stack_.forward(layer, model_.weights[layer], call, 0, x, nullptr, none);
  }

 private:
  const Model& model_;
  deepseek_v41::Steps steps_;
  reference::ThreadPool pool_{2};
  deepseek_v41::Engine engine_;
  deepseek_v41::LayerStack stack_;
};

/// The CUDA implementation.
class OnCuda {
 public:
  explicit OnCuda(const Model& model) : runtime_(model.config, model.layers, 0), sequence_(runtime_) {
    for (std::size_t i = 0; i < model.weights.size(); ++i) {
      runtime_.upload(i, model.weights[i]);
    }
  }

  LayerResult operator()(std::size_t layer, const CallShape& call, const Tensor& x) {
    NullObserver none;
    return download(sequence_.forward(layer, call, 0, x, nullptr, none), runtime_.queue());
  }

 private:
  Runtime runtime_;
  DeviceSequence sequence_;
};

template <typename Implementation>
ForwardLayer forward_of(Implementation& implementation) {
  return [&](std::size_t layer, const CallShape& call, const Tensor& x) { return implementation(layer, call, x); };
}

TEST(PrefillAndDecodeOnCpu, AgreeWhereEachSourceKeepsItsKeys) {
  const Model model(IndexKeyRule::own);
  OnCpu cpu(model);
  expect_equal_where_keys_are_own(model, forward_of(cpu));
}

TEST(PrefillAndDecodeOnCpu, DifferUnderTheReleasedRuleWhereNoGroupIsCompleted) {
  const Model model(IndexKeyRule::slot);
  OnCpu cpu(model);
  expect_differs_where_no_group_is_completed(model, forward_of(cpu));
}

class PrefillAndDecodeOnCuda : public OnGpu {};

TEST_F(PrefillAndDecodeOnCuda, AgreeWhereEachSourceKeepsItsKeys) {
  const Model model(IndexKeyRule::own);
  OnCuda cuda(model);
  expect_equal_where_keys_are_own(model, forward_of(cuda));
}

TEST_F(PrefillAndDecodeOnCuda, DifferUnderTheReleasedRuleWhereNoGroupIsCompleted) {
  const Model model(IndexKeyRule::slot);
  OnCuda cuda(model);
  expect_differs_where_no_group_is_completed(model, forward_of(cuda));
}

}  // namespace
}  // namespace attndiff::device
