// Times one layer's forward at released geometry on the CPU reference, and each stage of it: GFLOP/s where the stage is
// a product, milliseconds otherwise.
//   build/release/bin/layer_bench --benchmark_filter=kv2

#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "reference/deepseek_v41/geometry.h"
#include "reference/deepseek_v41/sequence.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff::deepseek_v41 {
namespace {

ModelConfig released(std::int64_t max_tokens) {
  ModelConfig c = released_config();
  c.max_seq = 8192;
  c.max_tokens = max_tokens;
  return c;
}

struct Kind {
  const char* name;
  LayerRole role;
};

const Kind kKinds[] = {
    {"window", {.layer_id = 0, .ratio = 0}},
    {"kv2", {.layer_id = 2, .ratio = 2, .is_kv_source = true, .is_index_source = true}},
    {"cand1", {.layer_id = 20, .ratio = 1, .is_kv_source = true, .is_index_source = true, .is_candidate_source = true}},
};

Tensor random_tensor(DType dtype, const Shape& shape, double rms, std::mt19937& engine) {
  std::normal_distribution<float> normal(0.0F, static_cast<float>(rms));
  Tensor f(DType::f32, shape);
  for (float& v : f.as<float>()) {
    v = normal(engine);
  }
  return dtype == DType::f32 ? f : to_bf16(f);
}

LayerWeights random_weights(const ModelConfig& c, const LayerRole& role) {
  std::mt19937 engine(1);
  LayerWeights weights;
  for (const WeightSpec& spec : family().weights(c, role)) {
    const bool vector = spec.shape.rank() == 1;
    const double rms = vector ? 1.0 : 1.0 / std::sqrt(static_cast<double>(spec.shape[1]));
    weights.set(spec.name, {.values = random_tensor(spec.dtype, spec.shape, rms, engine), .scales = {}});
  }
  return weights;
}

/// Floating-point operations of the products that a stage's time covers; 0 where it has none worth a rate.
double flops(StageId stage, const ModelConfig& c, const LayerRole& role, const CallShape& call) {
  const auto t = static_cast<double>(call.tokens);
  const auto d = [](std::int64_t v) { return static_cast<double>(v); };
  const double attended = d(window_columns(c, call) + selection_columns(c, role, call));
  switch (stage) {
    case kQr:
      return 2 * t * d(c.dim) * d(c.q_rank);
    case kQ:
      return 2 * t * d(c.q_rank) * d(c.n_heads * c.head_dim);
    case kKvPre:
      return 2 * t * d(c.dim) * d(c.head_dim);
    case kCompState:
      return 4 * t * d(c.dim) * d(c.head_dim);
    case kIndexQPre:
      return 2 * t * d(c.q_rank) * d(c.index_heads * c.index_head_dim);
    case kIndexScore:
      return 2 * t * d(compressed_length(role, call)) * d(c.index_heads * c.index_head_dim);
    case kLse:  // measured up to lse: scores, softmax and the weighted sum of rows
      return 4 * t * d(c.n_heads) * attended * d(c.head_dim);
    case kOg:
      return 2 * t * d(c.n_heads * c.head_dim) * d(c.o_rank);
    case kOut:
      return 2 * t * d(c.groups * c.o_rank) * d(c.dim);
    default:
      return 0;
  }
}

/// Adds up the time from one stage to the next.
class StageClock final : public Observer {
 public:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] Interest interest(const LayerCall&, const StageInfo& stage) override {
    return stage.id == kRows ? Interest::nothing : Interest::read;  // reading `rows` makes a copy of them
  }
  void on_stage(const LayerCall&, StageView& view, Stream) override {
    const auto now = Clock::now();
    seconds[view.stage.id] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  void start() { last_ = Clock::now(); }

  std::map<int, double> seconds;

 private:
  Clock::time_point last_;
};

void run_layer(benchmark::State& state, const Kind& kind, std::int64_t tokens, bool decode) {
  const ModelConfig c = released(tokens);
  const Steps steps;
  reference::ThreadPool pool(2);
  const Engine engine{.config = c, .steps = steps, .pool = pool};
  const LayerWeights weights = random_weights(c, kind.role);
  std::mt19937 random(2);
  const Tensor prompt = random_tensor(DType::bf16, {tokens, c.dim}, 1.0, random);
  const Tensor token = random_tensor(DType::bf16, {1, c.dim}, 1.0, random);
  const LayerRole roles[] = {kind.role};
  LayerStack stack(engine, roles);
  StageClock clock;
  NullObserver nobody;
  CallShape call{.tokens = tokens, .start_pos = 0};
  if (decode) {
    stack.forward(0, weights, call, 0, prompt, nullptr, nobody);
    call = {.tokens = 1, .start_pos = tokens};
  }
  for (auto _ : state) {
    clock.start();
    stack.forward(0, weights, call, 0, decode ? token : prompt, nullptr, clock);
    if (decode) {
      ++call.start_pos;
    }
  }
  for (const auto& [stage, seconds] : clock.seconds) {
    const std::string name(family().stages[static_cast<std::size_t>(stage)].name);
    const double per_call = seconds / static_cast<double>(state.iterations());
    const double work = flops(static_cast<StageId>(stage), c, kind.role, call);
    if (work > 0) {
      state.counters[name + "_GFLOP/s"] = work / per_call * 1e-9;
    } else {
      state.counters[name + "_ms"] = per_call * 1e3;
    }
  }
}

const bool kRegistered = [] {
  for (const Kind& kind : kKinds) {
    benchmark::RegisterBenchmark((std::string("prefill128/") + kind.name).c_str(),
                                 [&kind](benchmark::State& state) { run_layer(state, kind, 128, false); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
    benchmark::RegisterBenchmark((std::string("decode/") + kind.name).c_str(),
                                 [&kind](benchmark::State& state) { run_layer(state, kind, 128, true); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime()
        ->Iterations(64);
  }
  return true;
}();

}  // namespace
}  // namespace attndiff::deepseek_v41

BENCHMARK_MAIN();
