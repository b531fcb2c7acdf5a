#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "reference/deepseek_v41/forward.h"

namespace attndiff::deepseek_v41 {

/// The layers of one sequence with their states and slots: layers in order inside a step, steps in order.
class LayerStack {
 public:
  /// `layers` must outlive the stack.
  LayerStack(const Engine& engine, std::span<const LayerRole> layers);

  /// Starts in mid-sequence at `start_pos`: one declared state for each layer. The slots compress_kv and index_k start
  /// as after a complete earlier step, owned by the layers named, else by the last kv source.
  /// Throws Error(refused) when a part that a layer needs is absent or has the wrong shape.
  void resume(std::int64_t start_pos, std::span<const InitialLayerState> states,
              std::optional<std::int64_t> compress_kv_owner, std::optional<std::int64_t> index_k_owner);

  /// Runs one layer. `shared` sets slot values before it runs; null leaves them.
  /// Throws Error(refused) also for a call that does not continue where the layer's last one ended.
  LayerResult forward(std::size_t layer, const LayerWeights& weights, const CallShape& call, std::int64_t sequence,
                      const Tensor& x, const SharedInputs* shared, Observer& observer);

  [[nodiscard]] const Slots& slots() const noexcept { return slots_; }
  [[nodiscard]] const LayerState& state(std::size_t layer) const { return states_.at(layer); }

 private:
  void begin_step(std::size_t layer, const CallShape& call);

  const Engine& engine_;
  std::span<const LayerRole> layers_;
  std::vector<LayerState> states_;
  std::vector<std::int64_t> next_position_;
  std::optional<std::size_t> last_layer_;
  Slots slots_;
};

}  // namespace attndiff::deepseek_v41
