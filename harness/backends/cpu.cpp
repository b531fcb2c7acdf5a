#include "harness/backends/cpu.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <utility>

#include "harness/fixture/reader.h"
#include "reference/deepseek_v41/sequence.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff {
namespace {

class CpuSequence final : public Sequence {
 public:
  CpuSequence(const FixtureReader& fixture, const deepseek_v41::Steps& steps, reference::ThreadPool& pool)
      : engine_{.config = fixture.config(), .steps = steps, .pool = pool}, stack_(engine_, fixture.layers()) {
    if (!fixture.resumes()) {
      return;
    }
    std::vector<InitialLayerState> states;
    for (std::size_t layer = 0; layer < fixture.layers().size(); ++layer) {
      states.push_back(fixture.initial_state(layer));
    }
    stack_.resume(fixture.steps().front().shape.start_pos, states, fixture.compress_kv_owner(),
                  fixture.index_k_owner());
  }

  [[nodiscard]] const Slots* slots() const override { return &stack_.slots(); }

  void forward(const LayerInput& input, Observer& observer) override {
    stack_.forward(input.layer, *input.weights, input.shape, input.sequence, input.x,
                   input.shared ? &*input.shared : nullptr, observer);
  }

 private:
  deepseek_v41::Engine engine_;
  deepseek_v41::LayerStack stack_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, std::string name, deepseek_v41::Steps steps)
      : name_(std::move(name)), steps_(std::move(steps)), pool_(threads) {}

  [[nodiscard]] std::string name() const override { return name_; }

  [[nodiscard]] std::string description() const override {
    return fmt::format("Eigen {}.{}.{}, {} threads", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION,
                       pool_.threads());
  }

  [[nodiscard]] Plan plan(const FixtureReader& fixture, std::size_t step, std::size_t layer) const override {
    Plan plan;
    for (const StageInfo& stage : deepseek_v41::family().stages) {
      if (stage.shape(fixture.config(), fixture.layers().at(layer), fixture.steps().at(step).shape)) {
        plan.segments.push_back(
            {.stages = {stage.id}, .publishes = {stage.id}, .accepts = {stage.id}, .skipped_roundings = {}});
      }
    }
    return plan;
  }

  [[nodiscard]] std::unique_ptr<Sequence> start(const FixtureReader& fixture) override {
    return std::make_unique<CpuSequence>(fixture, steps_, pool_);
  }

 private:
  std::string name_;
  deepseek_v41::Steps steps_;
  reference::ThreadPool pool_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) { return make_cpu_backend(threads, "cpu", {}); }

std::unique_ptr<Backend> make_cpu_backend(int threads, std::string name, deepseek_v41::Steps steps) {
  return std::make_unique<CpuBackend>(threads, std::move(name), std::move(steps));
}

}  // namespace attndiff
