#pragma once

#include <cstddef>
#include <cstdint>

#include "device/runtime.h"
#include "device/sequence.h"
#include "device/stage_tap.h"
#include "kernels/quantize.h"
#include "reference/contract/observer.h"

namespace attndiff::device {

/// One layer's call on the device, after its refusals. The host half (position, rotary phases, selection) uploads what
/// changed; the launches of the device half take no scalar that changes from token to token, so a decode step of a
/// layer that is neither kv nor index source can be captured as it is.
class LayerRun {
 public:
  LayerRun(Runtime& runtime, DeviceSequence& sequence, std::size_t layer, const CallShape& call,
           std::int64_t sequence_id, Observer& observer);

  /// Runs the layer on `x`, a host tensor bf16 [tokens, dim].
  LayerViews execute(const Tensor& x);

 private:
  /// Rows that attention reads.
  struct Attended {
    const Bf16* window = nullptr;
    const Bf16* compressed = nullptr;
  };

  // Host half.
  void prepare();
  // Steps of the specification, in its order; each offers its stages.
  void make_query();
  void make_window_rows();
  void make_members();
  void compress();
  void make_index_keys();
  void make_index_queries();
  void score_and_select();
  void store_latents();
  [[nodiscard]] Attended attended_rows();
  void build_idx();
  void attend(const Attended& rows);
  void project_output();

  void rotate(const Bf16* from, Bf16* to, std::int64_t rows, std::int64_t per_position, std::int64_t width,
              bool inverse = false);
  void rotate_groups(Bf16* rows, std::int64_t width);
  void pool_partial();
  void norm(Bf16* rows, std::int64_t count, const char* weight);
  void linear(const Bf16* x, const char* weight, Bf16* y, std::int64_t tokens, std::int64_t batch = 1);
  void quantise(Bf16* rows, std::int64_t count, kernels::RoundTrip round_trip);
  void publish_candidates(Tensor mask);
  void publish_selection(Tensor picks);
  [[nodiscard]] LayerViews views(const Attended& rows) const;
  [[nodiscard]] TensorView view(int stage, void* data) const;

  [[nodiscard]] std::int64_t selection_width() const noexcept;

  Runtime& runtime_;
  DeviceSequence& sequence_;
  const ModelConfig& config_;
  const LayerRole& role_;
  const DeviceWeights& weights_;
  DeviceState& state_;
  Workspace& w_;
  CallShape shape_;
  LayerCall call_;
  StageTap tap_;
  std::int64_t length_;   ///< compressed positions after the call
  std::int64_t groups_;   ///< groups the call completes
  std::int64_t columns_;  ///< of idx, without padding
  std::int64_t padding_;  ///< further columns of a padded decode step
};

}  // namespace attndiff::device
