#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace attndiff::kernels {

/// The numbers of one call that change from token to token. Kernels read them from device memory, so that a captured
/// decode step needs no new launch arguments.
struct StepScalars {
  std::int64_t position = 0;        ///< start_pos
  std::int64_t ring_slot = 0;       ///< start_pos % window
  std::int64_t partial_slot = 0;    ///< start_pos % ratio; kv sources
  std::int64_t group_position = 0;  ///< rotary position of the call's first group; kv sources

  friend bool operator==(const StepScalars&, const StepScalars&) = default;
};

/// Stores `value` in device memory, ordered on `stream`. The value travels as a launch argument: no host buffer has to
/// outlive the call.
void launch_set_step(StepScalars* device, const StepScalars& value, cudaStream_t stream);

}  // namespace attndiff::kernels
