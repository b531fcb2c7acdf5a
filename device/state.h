#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "device/launches.h"
#include "device/memory.h"
#include "device/refusals.h"
#include "reference/contract/config.h"
#include "reference/contract/state.h"

namespace attndiff::device {

/// A cache of compressed rows on the device, bf16 [capacity, width], zero where nothing was written.
struct DeviceCache {
  DeviceBuffer rows;
  std::int64_t capacity = 0;
  std::int64_t width = 0;

  DeviceCache(std::int64_t row_count, std::int64_t row_width, const char* what);
  [[nodiscard]] Bf16* row(std::int64_t index) const noexcept { return rows.as<Bf16>() + index * width; }
  [[nodiscard]] std::size_t bytes_of(std::int64_t count) const noexcept {
    return static_cast<std::size_t>(count * width) * sizeof(Bf16);
  }
};

/// What one layer carries from call to call, on the device. Parts that its kind does not have stay empty.
class DeviceState {
 public:
  /// Memory only; its contents are undefined until reset() or restore().
  DeviceState(const ModelConfig& config, const LayerRole& role);

  /// The state of a new sequence: ring and caches 0, the partial group's k 0 and g -inf.
  void reset(const Launches& launches, cudaStream_t stream);
  /// The state a fixture declares at `start_pos`; throws Error(refused) where a part is absent or has the wrong shape.
  void restore(const InitialLayerState& declared, std::int64_t start_pos, const Launches& launches,
               cudaStream_t stream);
  /// Frees the memory once; a second call does nothing. Slots that still hold a cache keep it alive.
  void release() noexcept;

  [[nodiscard]] Bf16* ring() const noexcept { return ring_.as<Bf16>(); }
  /// f32 [2, ratio, head_dim]: the partial group's k, then g.
  [[nodiscard]] float* partial() const noexcept { return partial_.as<float>(); }
  [[nodiscard]] const std::shared_ptr<DeviceCache>& latents() const noexcept { return latents_; }
  [[nodiscard]] const std::shared_ptr<DeviceCache>& index_keys() const noexcept { return index_keys_; }
  /// Tokens the state has seen: where the next call starts.
  std::int64_t next_position = 0;

 private:
  void restore_partial(const InitialLayerState& declared, std::int64_t start_pos, cudaStream_t stream);

  ModelConfig config_;
  LayerRole role_;
  DeviceBuffer ring_;
  DeviceBuffer partial_;
  std::shared_ptr<DeviceCache> latents_;
  std::shared_ptr<DeviceCache> index_keys_;
};

/// The values layers share: caches on the device, selection and mask on the host, where they are made.
struct DeviceSlots {
  std::optional<Slot<std::shared_ptr<const DeviceCache>>> compress_kv;
  std::optional<Slot<std::shared_ptr<const DeviceCache>>> index_k;
  std::optional<Slot<Tensor>> selection;   ///< i32 [tokens, k], without offset
  std::optional<Slot<Tensor>> candidates;  ///< u8 [tokens, len]

  [[nodiscard]] SlotFacts facts() const;
};

}  // namespace attndiff::device
