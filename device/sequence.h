#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "device/memory.h"
#include "device/runtime.h"
#include "device/state.h"
#include "reference/contract/observer.h"
#include "reference/contract/state.h"

namespace attndiff::device {

/// One layer's results where they lie on the device, valid until the runtime's next call.
struct LayerViews {
  TensorView q;                ///< bf16 [tokens, n_heads, head_dim]
  TensorView window_rows;      ///< bf16 [attended window rows, head_dim]
  TensorView compressed_rows;  ///< bf16 [compressed_count, head_dim]; data is null without any
  std::int64_t compressed_count = 0;
  TensorView idx;  ///< i32 [tokens, window columns + selection columns]
  TensorView o;    ///< bf16 [tokens, n_heads, head_dim], before the inverse rotation
  TensorView out;  ///< bf16 [tokens, dim]
};

/// The selection of the last index source on the device. A row of a decode call is padded with -1 to its widest, so
/// that the padded and the plain step read the same buffer.
struct DeviceSelection {
  DeviceBuffer picks;        ///< i32 [tokens, columns], or one padded row
  std::int32_t lowest = -1;  ///< smallest and largest pick
  std::int32_t highest = -1;
};

/// What one sequence keeps on the device: its layers' states, the slots, and scratch memory for observed calls.
class DeviceSequence {
 public:
  /// The runtime must outlive the sequence.
  explicit DeviceSequence(Runtime& runtime);

  /// Starts in mid-sequence, as reference/deepseek_v41/sequence.h does: one declared state for each layer; the slots
  /// are owned by the layers named, else by the last kv source.
  void resume(std::int64_t start_pos, std::span<const InitialLayerState> states,
              std::optional<std::int64_t> compress_kv_owner, std::optional<std::int64_t> index_k_owner);

  /// Runs one layer, layers in order inside a step; `x` is a host tensor, bf16 [tokens, dim]. `shared` sets slot values
  /// first; null leaves them. Stages are offered to the observer as device memory, ordered on the runtime's stream;
  /// work may still be running when this returns: Runtime::queue().wait() waits and reports what went wrong in it.
  /// Throws Error(refused) before any launch for a call the specification refuses.
  LayerViews forward(std::size_t layer, const CallShape& call, std::int64_t sequence, const Tensor& x,
                     const SharedInputs* shared, Observer& observer);

  /// Frees the layers' states; a second call does nothing.
  void release() noexcept;

  [[nodiscard]] DeviceState& state(std::size_t layer) { return states_.at(layer); }
  [[nodiscard]] DeviceSlots& slots() noexcept { return slots_; }
  [[nodiscard]] DeviceSelection& selection() noexcept { return selection_; }
  /// Publishes a selection: the slot and its copy on the device.
  void publish_selection(Tensor picks, std::int64_t owner);
  /// Memory for an observed stage, kept until a later call needs more.
  [[nodiscard]] DeviceBuffer& scratch(int stage, std::size_t bytes);

 private:
  void begin_step(std::size_t layer, const CallShape& call);
  void set_shared(const SharedInputs& shared);
  /// Throws Error(refused) where a layer would read a pick outside its own rows.
  void check_selected(const LayerRole& role, const CallShape& call) const;

  Runtime& runtime_;
  std::vector<DeviceState> states_;
  DeviceSlots slots_;
  DeviceSelection selection_;
  std::optional<std::size_t> last_layer_;
  std::map<int, DeviceBuffer> scratch_;
};

/// Copies a device view to a host tensor, waiting for it.
[[nodiscard]] Tensor download(const TensorView& view, const Queue& queue);

/// Copies a call's results to the host, waiting for them.
[[nodiscard]] LayerResult download(const LayerViews& views, const Queue& queue);

}  // namespace attndiff::device
