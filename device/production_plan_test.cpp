#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "device/model_test_support.h"
#include "device/sequence.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff::device {
namespace {

class ProductionPlan : public OnGpu {};

/// What the gate's production run asks for: the layer's result and nothing else.
class ResultOnly final : public Observer {
 public:
  Interest interest(const LayerCall&, const StageInfo& stage) override {
    return stage.id == deepseek_v41::kOut ? Interest::read : Interest::nothing;
  }
  void on_stage(const LayerCall&, StageView&, attndiff::Stream) override {}
};

using Trace = std::vector<std::string>;

template <typename Result, typename... Args>
void note_calls(std::function<Result(Args...)>& entry, const char* name, Trace& trace) {
  entry = [call = std::move(entry), name, &trace](Args... args) -> Result {
    trace.emplace_back(name);
    return call(std::forward<Args>(args)...);
  };
}

Launches traced(Trace& trace) {
  Launches l;
  note_calls(l.rms_norm, "rms_norm", trace);
  note_calls(l.rotary, "rotary", trace);
  note_calls(l.quantize, "quantize", trace);
  note_calls(l.scale, "scale", trace);
  note_calls(l.matvec, "matvec", trace);
  note_calls(l.multiply, "multiply", trace);
  note_calls(l.ring_write, "ring_write", trace);
  note_calls(l.index_build, "index_build", trace);
  note_calls(l.compressor_product, "compressor_product", trace);
  note_calls(l.pool, "pool", trace);
  note_calls(l.partial_write, "partial_write", trace);
  note_calls(l.index_scores, "index_scores", trace);
  note_calls(l.download_scores, "download_scores", trace);
  note_calls(l.candidate_mask, "candidate_mask", trace);
  note_calls(l.select_positions, "select_positions", trace);
  note_calls(l.upload_selection, "upload_selection", trace);
  note_calls(l.sparse_attention, "sparse_attention", trace);
  return l;
}

/// A layer's launches from its inputs to its result, in order.
std::vector<Trace> launches_of(Runtime& runtime, Trace& trace, Observer& observer) {
  DeviceSequence sequence(runtime);
  std::vector<Trace> by_call;
  for (const CallShape& call : calls(21, 6)) {
    for (std::size_t layer = 0; layer < runtime.layers().size(); ++layer) {
      trace.clear();
      sequence.forward(layer, call, 0, random_input(runtime.config(), call, layer), nullptr, observer);
      runtime.queue().wait();
      by_call.push_back(trace);
    }
  }
  return by_call;
}

TEST_F(ProductionPlan, TheGateLaunchesWhatRunsWhenNobodyLooks) {
  const ModelConfig config = micro_config();
  const std::vector<LayerRole> layers = micro_layers();
  Trace trace;
  RuntimeOptions options;
  options.launches = traced(trace);
  Runtime runtime(config, layers, 0, std::move(options));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    runtime.upload(i, random_weights(config, layers[i], static_cast<unsigned>(i)));
  }
  NullObserver nobody;
  ResultOnly gate;
  const std::vector<Trace> alone = launches_of(runtime, trace, nobody);
  EXPECT_GT(alone.front().size(), 8U);
  EXPECT_EQ(launches_of(runtime, trace, gate), alone);
}

ModelConfig released_config(std::int64_t tokens) {
  ModelConfig c = deepseek_v41::released_config();
  c.max_seq = 2 * tokens;
  c.max_tokens = tokens;
  return c;
}

/// Values that are cheap to make, a hundred million of them: what they are does not change what is launched.
LayerWeights cheap_weights(const ModelConfig& config, const LayerRole& role) {
  constexpr std::uint32_t kStep = 2654435761U;  // 2^32 over the golden ratio
  LayerWeights weights;
  for (const WeightSpec& spec : family_named(config.family).weights(config, role)) {
    Tensor values(spec.dtype, spec.shape);
    const float scale = is_norm(spec.name) ? 1.0F : 0x1p-6F;
    const auto value = [&](std::int64_t i) {
      return scale * (static_cast<float>(static_cast<std::uint32_t>(i) * kStep) * 0x1p-31F - 1.0F);
    };
    for (std::int64_t i = 0; i < spec.shape.count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (spec.dtype == DType::bf16) {
        values.as<Bf16>()[at] = to_bf16(value(i));
      } else {
        values.as<float>()[at] = value(i);
      }
    }
    weights.set(spec.name, {.values = std::move(values), .scales = {}});
  }
  return weights;
}

/// Milliseconds of one call, from its inputs on the host to its result on the device.
double milliseconds(Runtime& runtime, const CallShape& call, const Tensor& x, Observer& observer) {
  DeviceSequence sequence(runtime);
  runtime.queue().wait();
  const auto begin = std::chrono::steady_clock::now();
  sequence.forward(0, call, 0, x, nullptr, observer);
  runtime.queue().wait();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Both in turn, so that what else happens on the machine meets both.
TEST_F(ProductionPlan, TheGateTakesTheTimeOfARunThatNobodyLooksAt) {
  constexpr std::int64_t kTokens = 2048;
  const ModelConfig config = released_config(kTokens);
  const std::vector<LayerRole> layers{{.layer_id = 0, .ratio = 0}};
  Runtime runtime(config, layers, 0);
  runtime.upload(0, cheap_weights(config, layers.front()));
  const CallShape call{.tokens = kTokens, .start_pos = 0};
  const Tensor x = random_input(config, call, 0);
  NullObserver nobody;
  ResultOnly gate;
  std::vector<double> alone;
  std::vector<double> watched;
  constexpr int kWarmUp = 3;
  constexpr int kRepeats = 31;
  for (int i = 0; i < kWarmUp + kRepeats; ++i) {
    const double a = milliseconds(runtime, call, x, nobody);
    const double b = milliseconds(runtime, call, x, gate);
    if (i >= kWarmUp) {
      alone.push_back(a);
      watched.push_back(b);
    }
  }
  const double ratio = median(watched) / median(alone);
  std::cout << "production plan, window layer, " << kTokens << " tokens, median of " << kRepeats << ": "
            << median(alone) << " ms alone, " << median(watched) << " ms under the gate, ratio " << ratio << "\n";
  constexpr double kNoise = 0.05;
  EXPECT_NEAR(ratio, 1.0, kNoise);
}

}  // namespace
}  // namespace attndiff::device
