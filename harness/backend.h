#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/contract/observer.h"
#include "reference/contract/plan.h"
#include "reference/contract/state.h"
#include "reference/contract/weights.h"

namespace attndiff {

class FixtureReader;

/// One layer of one step, as the runner hands it to a backend.
struct LayerInput {
  std::size_t step = 0;   ///< index in the fixture
  std::size_t layer = 0;  ///< index in the fixture, not layer_id
  CallShape shape;
  std::int64_t sequence = 0;
  Tensor x;                                     ///< bf16 [tokens, dim]
  std::shared_ptr<const LayerWeights> weights;  ///< in their stored types
  std::optional<SharedInputs> shared;           ///< slot values to set first
};

/// A backend's run of one fixture: layers in order inside a step, steps in order.
class Sequence {
 public:
  Sequence() = default;
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  virtual ~Sequence() = default;

  /// The slots after the last layer that ran, for a backend that keeps them on the host; null otherwise.
  [[nodiscard]] virtual const Slots* slots() const { return nullptr; }

  /// Runs one layer and offers its stages to the observer. Throws Error(refused) for a call the specification refuses.
  virtual void forward(const LayerInput& input, Observer& observer) = 0;
};

/// An implementation of attention_any that can be compared with another.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// The name it was asked for by, "cuda:1" for instance.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Versions, device and driver, for reports.
  [[nodiscard]] virtual std::string description() const = 0;

  /// Whether it computes: then a stage that must be observable is missing where it is not published. A recording has
  /// only what was recorded.
  [[nodiscard]] virtual bool computes() const { return true; }

  /// What it publishes and accepts in a layer of that kind.
  [[nodiscard]] virtual Plan plan(const FixtureReader& fixture, std::size_t step, std::size_t layer) const = 0;

  /// Starts the fixture's sequence, from its declared initial state where it has one.
  [[nodiscard]] virtual std::unique_ptr<Sequence> start(const FixtureReader& fixture) = 0;
};

}  // namespace attndiff
