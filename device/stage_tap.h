#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "reference/contract/observer.h"

namespace attndiff::device {

/// Where one call's stages meet its observer. The wishes are asked for once, before the layer is prepared; a stage
/// nobody asked about costs one comparison.
class StageTap {
 public:
  StageTap(const LayerCall& call, std::span<const StageInfo> stages, Observer& observer, int device,
           cudaStream_t stream);

  [[nodiscard]] bool wanted(int id) const noexcept { return interest(id) != Interest::nothing; }
  [[nodiscard]] bool replaceable(int id) const noexcept { return wants(interest(id), Interest::replace); }

  /// The stage's shape; throws Error(internal) where the call has no such stage.
  [[nodiscard]] Shape shape(int id) const;

  /// Offers contiguous device memory holding the stage, ordered on the stream. There is no value before the last
  /// rounding to show: kernels round in registers.
  void offer(int id, void* data);

 private:
  [[nodiscard]] Interest interest(int id) const noexcept { return interests_[static_cast<std::size_t>(id)]; }

  const LayerCall& call_;
  std::span<const StageInfo> stages_;
  Observer& observer_;
  Place place_;
  cudaStream_t stream_;
  std::vector<Interest> interests_;
};

}  // namespace attndiff::device
