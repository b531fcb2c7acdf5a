#pragma once

#include <functional>
#include <map>

#include "reference/contract/observer.h"

namespace attndiff {

/// Keeps host copies of the stages it is asked to keep. Copies from a device are enqueued on the stage's stream and
/// complete when the backend's forward() returns.
class Capture final : public Observer {
 public:
  /// Decides by stage id.
  using Filter = std::function<bool(const StageInfo&)>;

  explicit Capture(Filter wanted) : wanted_(std::move(wanted)) {}

  [[nodiscard]] Interest interest(const LayerCall& call, const StageInfo& stage) override;
  void on_stage(const LayerCall& call, StageView& view, Stream stream) override;

  /// The stage's value, or nullptr where it was not offered.
  [[nodiscard]] const Tensor* find(int stage) const;

 private:
  Filter wanted_;
  std::map<int, Tensor> values_;
};

}  // namespace attndiff
