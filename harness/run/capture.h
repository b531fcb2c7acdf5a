#pragma once

#include <functional>
#include <map>
#include <utility>

#include "reference/contract/observer.h"

namespace attndiff {

/// One call's stages by id, on the host.
class StageValues {
 public:
  /// The stage's value, or nullptr where there is none.
  [[nodiscard]] const Tensor* find(int stage) const;
  /// The stage before its last rounding, f32, or nullptr.
  [[nodiscard]] const Tensor* find_unrounded(int stage) const;

  [[nodiscard]] Tensor& value(int stage) { return values_[stage]; }
  [[nodiscard]] Tensor& unrounded(int stage) { return unrounded_[stage]; }

 private:
  std::map<int, Tensor> values_;
  std::map<int, Tensor> unrounded_;
};

/// Keeps host copies of the stages it is asked to keep. Copies from a device are enqueued on the stage's stream and
/// complete when the backend's forward() returns.
class Capture final : public Observer {
 public:
  /// What to keep of a stage: nothing, read, or read | unrounded.
  using Filter = std::function<Interest(const StageInfo&)>;

  explicit Capture(Filter wanted) : wanted_(std::move(wanted)) {}

  [[nodiscard]] Interest interest(const LayerCall& call, const StageInfo& stage) override;
  void on_stage(const LayerCall& call, StageView& view, Stream stream) override;

  [[nodiscard]] const StageValues& stages() const noexcept { return stages_; }
  [[nodiscard]] StageValues take() noexcept { return std::move(stages_); }
  [[nodiscard]] const Tensor* find(int stage) const { return stages_.find(stage); }

 private:
  Filter wanted_;
  StageValues stages_;
};

/// Keeps a copy of what an implementation made of each stage, then puts a given value in its place, so that what comes
/// after starts from the given one.
class Substitution final : public Observer {
 public:
  /// `given` returns the value to put in place, or nullptr to leave a stage alone; what it points to must live until
  /// forward() returns. `kept` decides which stages are copied before.
  Substitution(std::function<const Tensor*(const StageInfo&)> given, Capture::Filter kept)
      : given_(std::move(given)), kept_(std::move(kept)) {}

  [[nodiscard]] Interest interest(const LayerCall& call, const StageInfo& stage) override;
  void on_stage(const LayerCall& call, StageView& view, Stream stream) override;

  [[nodiscard]] const StageValues& stages() const noexcept { return stages_; }

 private:
  std::function<const Tensor*(const StageInfo&)> given_;
  Capture::Filter kept_;
  StageValues stages_;
};

}  // namespace attndiff
