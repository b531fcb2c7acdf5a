#include "harness/backends/cuda.h"

#include <cstdlib>
#include <utility>

#include "device/gpu.h"
#include "device/plan.h"
#include "device/sequence.h"
#include "harness/backends/with_cuda/cuda_variant.h"
#include "harness/fixture/reader.h"

namespace attndiff {
namespace {

/// Switches of checking runs, set by scripts/gpu_gate.sh; results do not depend on them.
constexpr const char* kClearProducts = "ATTNDIFF_CUDA_CLEAR_PRODUCTS";
constexpr const char* kPoison = "ATTNDIFF_CUDA_POISON";

class CudaSequence final : public Sequence {
 public:
  CudaSequence(std::shared_ptr<device::Runtime> runtime, const FixtureReader& fixture)
      : runtime_(std::move(runtime)), sequence_(*runtime_) {
    if (!fixture.resumes()) {
      return;
    }
    std::vector<InitialLayerState> states;
    for (std::size_t layer = 0; layer < fixture.layers().size(); ++layer) {
      states.push_back(fixture.initial_state(layer));
    }
    sequence_.resume(fixture.steps().front().shape.start_pos, states, fixture.compress_kv_owner(),
                     fixture.index_k_owner());
  }

  void forward(const LayerInput& input, Observer& observer) override {
    runtime_->activate();
    if (!runtime_->uploaded(input.layer)) {
      runtime_->upload(input.layer, *input.weights);
    }
    sequence_.forward(input.layer, input.shape, input.sequence, input.x, input.shared ? &*input.shared : nullptr,
                      observer);
    runtime_->queue().wait();
  }

 private:
  std::shared_ptr<device::Runtime> runtime_;
  device::DeviceSequence sequence_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::string name, int ordinal, device::RuntimeOptions options, Arithmetic arithmetic)
      : name_(std::move(name)),
        ordinal_(ordinal),
        options_(std::move(options)),
        arithmetic_(std::move(arithmetic)),
        gpu_(device::require_gpu(ordinal)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string description() const override { return device::describe(gpu_); }

  [[nodiscard]] Plan plan(const FixtureReader& fixture, std::size_t step, std::size_t layer) const override {
    Plan plan = device::plan_of(fixture.config(), fixture.layers().at(layer), fixture.steps().at(step).shape);
    plan.arithmetic = arithmetic_;
    return plan;
  }

  [[nodiscard]] std::unique_ptr<Sequence> start(const FixtureReader& fixture) override {
    return std::make_unique<CudaSequence>(runtime_for(fixture), fixture);
  }

 private:
  /// Sequences of one fixture that live at the same time share kernels, tables, workspaces and weights.
  std::shared_ptr<device::Runtime> runtime_for(const FixtureReader& fixture) {
    std::shared_ptr<device::Runtime> runtime = runtime_.lock();
    if (!runtime || fixture_ != &fixture) {
      device::RuntimeOptions options = options_;
      // NOLINTNEXTLINE(concurrency-mt-unsafe): read only
      options.clear_products = options.clear_products || std::getenv(kClearProducts) != nullptr;
      options.poison = options.poison || std::getenv(kPoison) != nullptr;  // NOLINT(concurrency-mt-unsafe)
      runtime = std::make_shared<device::Runtime>(fixture.config(), fixture.layers(), ordinal_, options);
      runtime_ = runtime;
      fixture_ = &fixture;
    }
    return runtime;
  }

  std::string name_;
  int ordinal_;
  device::RuntimeOptions options_;
  Arithmetic arithmetic_;
  device::Gpu gpu_;
  std::weak_ptr<device::Runtime> runtime_;
  const FixtureReader* fixture_ = nullptr;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(std::string name, int ordinal, int threads) {
  device::RuntimeOptions options;
  options.threads = threads;
  return make_cuda_variant(std::move(name), ordinal, std::move(options), {});
}

std::unique_ptr<Backend> make_cuda_variant(std::string name, int ordinal, device::RuntimeOptions options,
                                           Arithmetic arithmetic) {
  return std::make_unique<CudaBackend>(std::move(name), ordinal, std::move(options), std::move(arithmetic));
}

}  // namespace attndiff
