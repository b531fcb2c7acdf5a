#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/step_scalars.h"
#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

/// Writes the last min(tokens, window) rows of a call into the ring, the row at position p into slot p % window. The
/// slot comes from device memory: `step->ring_slot` is the first token's.
struct RingWriteArgs {
  const Bf16* kv = nullptr;  ///< [tokens, width]
  Bf16* ring = nullptr;      ///< [window, width]
  const StepScalars* step = nullptr;
  std::int64_t tokens = 0;
  std::int64_t window = 0;
  std::int64_t width = 0;
};

void launch_ring_write(const RingWriteArgs& args, cudaStream_t stream);

/// Builds `idx`: window columns (the chunk's own rows in prefill, ring slots oldest first in decode), then the
/// selection with the number of attended window rows added; -1 is absent.
struct IndexBuildArgs {
  const std::int32_t* selection = nullptr;  ///< [tokens, selection_columns], without offset
  std::int32_t* idx = nullptr;              ///< [tokens, window_columns + selection_columns]
  const StepScalars* step = nullptr;
  std::int64_t tokens = 0;
  std::int64_t window = 0;
  std::int64_t window_columns = 0;
  std::int64_t selection_columns = 0;
  std::int64_t offset = 0;
  bool prefill = false;
};

void launch_index_build(const IndexBuildArgs& args, cudaStream_t stream);

}  // namespace attndiff::kernels
