#include "harness/mutants/faulty_backend.h"

#include <algorithm>
#include <utility>

#include "harness/backends/cpu.h"
#include "harness/fixture/reader.h"
#include "reference/deepseek_v41/sequence.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff::mutants {
namespace {

/// Stands between an implementation and its observer.
class ChangingObserver final : public Observer {
 public:
  ChangingObserver(const std::string& stage, const StageChange& change, Observer& outer)
      : stage_(stage), change_(change), outer_(outer) {}

  [[nodiscard]] Interest interest(const LayerCall& call, const StageInfo& stage) override {
    const Interest asked = outer_.interest(call, stage);
    return stage.name == stage_ ? asked | Interest::read | Interest::replace : asked;
  }

  void on_stage(const LayerCall& call, StageView& view, Stream stream) override {
    if (view.stage.name == stage_ && !change_(call, view.value)) {
      return;
    }
    if (outer_.interest(call, view.stage) != Interest::nothing) {
      outer_.on_stage(call, view, stream);
    }
  }

 private:
  const std::string& stage_;
  const StageChange& change_;
  Observer& outer_;
};

class ChangingSequence final : public Sequence {
 public:
  ChangingSequence(std::unique_ptr<Sequence> inner, std::string stage, StageChange change)
      : inner_(std::move(inner)), stage_(std::move(stage)), change_(std::move(change)) {}

  void forward(const LayerInput& input, Observer& observer) override {
    ChangingObserver changing(stage_, change_, observer);
    inner_->forward(input, changing);
  }

 private:
  std::unique_ptr<Sequence> inner_;
  std::string stage_;
  StageChange change_;
};

/// The reference from a start of its own.
class RestartedSequence final : public Sequence {
 public:
  RestartedSequence(const FixtureReader& fixture, const StartChange& change, int threads)
      : config_(fixture.config()),
        pool_(threads),
        engine_{.config = config_, .steps = steps_, .pool = pool_},
        stack_(engine_, fixture.layers()) {
    change.config(config_);
    if (!fixture.resumes()) {
      return;
    }
    std::vector<InitialLayerState> states;
    for (std::size_t layer = 0; layer < fixture.layers().size(); ++layer) {
      states.push_back(fixture.initial_state(layer));
      change.state(fixture.layers()[layer], states.back());
    }
    stack_.resume(fixture.steps().front().shape.start_pos, states, fixture.compress_kv_owner(),
                  fixture.index_k_owner());
  }

  void forward(const LayerInput& input, Observer& observer) override {
    stack_.forward(input.layer, *input.weights, input.shape, input.sequence, input.x,
                   input.shared ? &*input.shared : nullptr, observer);
  }

 private:
  ModelConfig config_;
  deepseek_v41::Steps steps_;
  reference::ThreadPool pool_;
  deepseek_v41::Engine engine_;
  deepseek_v41::LayerStack stack_;
};

std::unique_ptr<Sequence> as_it_does(Backend& inner, const FixtureReader& fixture) { return inner.start(fixture); }

/// Another backend under its name, with another way to start, or another plan.
class FaultyBackend final : public Backend {
 public:
  using Start = std::function<std::unique_ptr<Sequence>(Backend& inner, const FixtureReader& fixture)>;

  FaultyBackend(
      std::unique_ptr<Backend> inner, Start start, std::function<void(Plan&)> change_plan = [](Plan&) {})
      : inner_(std::move(inner)), start_(std::move(start)), change_plan_(std::move(change_plan)) {}

  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] std::string description() const override { return inner_->description(); }
  [[nodiscard]] Plan plan(const FixtureReader& fixture, std::size_t step, std::size_t layer) const override {
    Plan plan = inner_->plan(fixture, step, layer);
    change_plan_(plan);
    return plan;
  }
  [[nodiscard]] std::unique_ptr<Sequence> start(const FixtureReader& fixture) override {
    return start_(*inner_, fixture);
  }

 private:
  std::unique_ptr<Backend> inner_;
  Start start_;
  std::function<void(Plan&)> change_plan_;
};

}  // namespace

MakeBackend with_steps(deepseek_v41::Steps steps) {
  return [steps = std::move(steps)](int threads, const std::string& name) {
    return make_cpu_backend(threads, name, steps);
  };
}

MakeBackend with_steps(deepseek_v41::Steps steps, const Arithmetic& declared) {
  return [steps = std::move(steps), declared](int threads, const std::string& name) {
    return std::make_unique<FaultyBackend>(make_cpu_backend(threads, name, steps), as_it_does,
                                           [declared](Plan& plan) { plan.arithmetic = declared; });
  };
}

MakeBackend with_stage(std::string stage, std::function<StageChange()> start) {
  return [stage = std::move(stage), start = std::move(start)](int threads, const std::string& name) {
    return std::make_unique<FaultyBackend>(
        make_cpu_backend(threads, name, {}), [stage, start](Backend& inner, const FixtureReader& fixture) {
          return std::make_unique<ChangingSequence>(inner.start(fixture), stage, start());
        });
  };
}

MakeBackend with_stage(std::string stage, std::function<void(const LayerCall&, TensorView&)> change) {
  return with_stage(std::move(stage), [change = std::move(change)]() -> StageChange {
    return [change](const LayerCall& call, TensorView& view) {
      change(call, view);
      return true;
    };
  });
}

MakeBackend with_unplanned(std::string stage, MakeBackend inner) {
  return [stage = std::move(stage), inner = std::move(inner)](int threads, const std::string& name) {
    const int id = deepseek_v41::family().find(stage)->id;
    return std::make_unique<FaultyBackend>(inner(threads, name), as_it_does, [id](Plan& plan) {
      for (Segment& segment : plan.segments) {
        for (auto* part : {&segment.publishes, &segment.accepts}) {
          part->erase(std::remove(part->begin(), part->end(), id), part->end());
        }
      }
    });
  };
}

MakeBackend with_start(StartChange change) {
  return [change = std::move(change)](int threads, const std::string& name) {
    return std::make_unique<FaultyBackend>(make_cpu_backend(threads, name, {}),
                                           [change, threads](Backend&, const FixtureReader& fixture) {
                                             return std::make_unique<RestartedSequence>(fixture, change, threads);
                                           });
  };
}

}  // namespace attndiff::mutants
