#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "device/memory.h"
#include "reference/contract/config.h"
#include "reference/thread_pool.h"

namespace attndiff::device {

/// Cosines and sines of every position, float32 [max_seq, rope_dim / 2] on the device. The memory is allocated once;
/// its values are computed on the host, as the reference does, a chunk of positions when one is first needed: a test
/// that touches a few positions of a million does not pay for the others.
class RotaryTable {
 public:
  /// `frequencies`: one for each of rope_dim / 2 pairs.
  RotaryTable(const ModelConfig& config, std::vector<float> frequencies);

  /// Makes positions [first, first + count) valid for work enqueued on `stream` from now on.
  void require(std::int64_t first, std::int64_t count, reference::ThreadPool& pool, cudaStream_t stream);

  [[nodiscard]] const float* cos() const noexcept { return cos_.as<float>(); }
  [[nodiscard]] const float* sin() const noexcept { return sin_.as<float>(); }

 private:
  void fill(std::int64_t chunk, reference::ThreadPool& pool, cudaStream_t stream);

  std::vector<float> frequencies_;
  std::int64_t positions_;
  DeviceBuffer cos_;
  DeviceBuffer sin_;
  std::vector<bool> filled_;
};

}  // namespace attndiff::device
