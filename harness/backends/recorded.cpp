#include "harness/backends/recorded.h"

#include <vector>

#include "harness/fixture/reader.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

class RecordedSequence final : public Sequence {
 public:
  explicit RecordedSequence(const FixtureReader& fixture) : fixture_(fixture) {}

  void forward(const LayerInput& input, Observer& observer) override {
    const ModelFamily& family = family_named(fixture_.config().family);
    const LayerCall call{.config = fixture_.config(),
                         .role = fixture_.layers().at(input.layer),
                         .shape = input.shape,
                         .sequence = input.sequence};
    for (const std::string& name : fixture_.recorded_stages(input.step, input.layer)) {
      const StageInfo& stage = *family.find(name);
      if (observer.interest(call, stage) == Interest::nothing) {
        continue;
      }
      std::optional<Tensor> value = fixture_.expected(input.step, input.layer, name);
      if (!value) {
        continue;
      }
      StageView view{.stage = stage, .value = value->view(), .unrounded = {}};
      observer.on_stage(call, view, Stream{});
    }
  }

 private:
  const FixtureReader& fixture_;
};

class RecordedBackend final : public Backend {
 public:
  [[nodiscard]] std::string name() const override { return "recorded"; }
  [[nodiscard]] std::string description() const override { return "the tensors stored in each fixture"; }
  [[nodiscard]] bool computes() const override { return false; }

  [[nodiscard]] Plan plan(const FixtureReader& fixture, std::size_t step, std::size_t layer) const override {
    const ModelFamily& family = family_named(fixture.config().family);
    Plan plan;
    for (const std::string& name : fixture.recorded_stages(step, layer)) {
      const int id = family.find(name)->id;
      plan.segments.push_back({.stages = {id}, .publishes = {id}, .accepts = {}, .skipped_roundings = {}});
    }
    return plan;
  }

  [[nodiscard]] std::unique_ptr<Sequence> start(const FixtureReader& fixture) override {
    return std::make_unique<RecordedSequence>(fixture);
  }
};

}  // namespace

std::unique_ptr<Backend> make_recorded_backend() { return std::make_unique<RecordedBackend>(); }

}  // namespace attndiff
