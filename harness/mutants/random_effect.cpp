#include "harness/mutants/random_effect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "harness/fixture/reader.h"
#include "harness/run/candidate_run.h"
#include "harness/run/capture.h"
#include "harness/run/layer_loader.h"
#include "reference/contract/bfloat16.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

/// Distance from a finite value to the next one of its type, away from zero.
double unit_at(const Tensor& values, std::size_t i) {
  if (values.dtype() == DType::bf16) {
    const auto magnitude = static_cast<std::uint16_t>(values.as<Bf16>()[i].bits & 0x7fffU);
    const auto next = static_cast<std::uint16_t>(magnitude + 1);
    const double above = to_float(Bf16{next});
    // Above the largest finite value stands an infinity: the unit is that of the value below.
    return std::isfinite(above) ? above - to_float(Bf16{magnitude})
                                : to_float(Bf16{magnitude}) - to_float(Bf16{static_cast<std::uint16_t>(magnitude - 1)});
  }
  const float magnitude = std::fabs(values.as<float>()[i]);
  return static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) - magnitude;
}

/// What one stage's values say, as text; nothing where they do not certainly differ.
std::optional<std::string> certainly_differs(const Tensor& ours, const Tensor* unrounded, const Tensor* slack,
                                             const Tensor& theirs) {
  if (!(ours.shape() == theirs.shape()) || ours.dtype() != theirs.dtype()) {
    return fmt::format("has the form {}{}", name_of(theirs.dtype()), theirs.shape().text());
  }
  const Tensor a = to_f32(ours);
  const Tensor b = to_f32(theirs);
  const auto x = a.as<float>();
  const auto y = b.as<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) {
      continue;
    }
    const float center = unrounded != nullptr ? unrounded->as<float>()[i] : x[i];
    const float allowed = slack != nullptr ? slack->as<float>()[i] : 0.0F;
    const bool measurable = slack != nullptr && std::isfinite(x[i]) && std::isfinite(y[i]) && std::isfinite(center) &&
                            std::isfinite(allowed);
    if (!measurable) {
      return fmt::format("element {}: {} instead of {}", i, y[i], x[i]);
    }
    const double moved = std::fabs(static_cast<double>(y[i]) - center);
    const double due = unit_at(theirs, i) / 2 + allowed;
    if (moved > 2 * due) {
      return fmt::format("element {}: {} instead of {}, {:.3g} times its allowance", i, y[i], center, moved / due);
    }
  }
  return std::nullopt;
}

class Probe {
 public:
  Probe(const FixtureReader& fixture, Backend& reference, Backend& candidate)
      : fixture_(fixture),
        candidate_(candidate),
        family_(family_named(fixture.config().family)),
        pool_(1),
        loader_(fixture),
        ours_(reference.start(fixture)),
        theirs_(candidate.start(fixture)) {}

  std::optional<Effect> run() {
    for (std::size_t step = 0; step < fixture_.steps().size(); ++step) {
      for (std::size_t layer = 0; layer < fixture_.layers().size(); ++layer) {
        if (auto effect = run_layer(step, layer)) {
          return effect;
        }
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<Effect> run_layer(std::size_t step, std::size_t layer) {
    const LayerInput input = loader_.load(step, layer);
    const LayerRole& role = fixture_.layers()[layer];
    Capture own([](const StageInfo&) { return Interest::read | Interest::unrounded; });
    ours_->forward(input, own);
    const auto effect = [&](const StageInfo& stage, std::string what) {
      return Effect{.step = step, .layer_id = role.layer_id, .stage = std::string(stage.name), .what = std::move(what)};
    };
    Substitution restoring([&](const StageInfo& stage) { return own.find(stage.id); },
                           [](const StageInfo&) { return Interest::read; });
    try {
      theirs_->forward(input, restoring);
    } catch (const Error& error) {
      return effect(family_.stages.back(), std::string("throws: ") + error.what());
    }
    auto& norms = norms_[layer];
    if (!norms || norms->owner() != input.weights) {
      norms = std::make_unique<WeightNorms>(input.weights);
    }
    const Plan plan = candidate_.plan(fixture_, step, layer);
    const Slots* slots = ours_->slots();
    const BoundInputs bounds{.config = fixture_.config(),
                             .role = role,
                             .call = input.shape,
                             .x = input.x,
                             .norms = *norms,
                             .value = [&](int id) { return own.find(id); },
                             .unrounded = [&](int id) { return own.stages().find_unrounded(id); },
                             .index_keys = slots != nullptr && slots->index_k ? slots->index_k->value : nullptr,
                             .arithmetic = plan.arithmetic,
                             .pool = pool_};
    const std::set<int> planned = published_stages(plan);
    for (const StageInfo& stage : family_.stages) {
      const Tensor* value = own.find(stage.id);
      if (value == nullptr) {
        continue;
      }
      const bool published = planned.contains(stage.id);
      const Tensor* found = restoring.stages().find(stage.id);
      if ((published && found == nullptr) || (!published && stage.required)) {
        return effect(stage, published ? "is planned and not offered" : "is not planned");
      }
      if (!published) {
        continue;
      }
      const std::optional<StageSlack> slack = family_.slack(stage.id, bounds);
      if (auto what = certainly_differs(*value, own.stages().find_unrounded(stage.id), slack ? &slack->values : nullptr,
                                        *found)) {
        return effect(stage, std::move(*what));
      }
    }
    return std::nullopt;
  }

  const FixtureReader& fixture_;
  Backend& candidate_;
  const ModelFamily& family_;
  reference::ThreadPool pool_;
  LayerLoader loader_;
  std::unique_ptr<Sequence> ours_;
  std::unique_ptr<Sequence> theirs_;
  std::map<std::size_t, std::unique_ptr<WeightNorms>> norms_;
};

}  // namespace

std::optional<Effect> certain_effect(const FixtureReader& fixture, Backend& reference, Backend& candidate) {
  return Probe(fixture, reference, candidate).run();
}

}  // namespace attndiff
