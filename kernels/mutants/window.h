#pragma once

#include <cuda_runtime_api.h>

#include "kernels/window.h"

namespace attndiff::kernels::mutants {

/// `launch_ring_write` whose rows go one slot too far once the ring has wrapped.
void launch_ring_write_past_the_wrap(const RingWriteArgs& args, cudaStream_t stream);

/// Building `idx` with parts that can be wrong. The defaults are right.
struct IndexBuildVariant {
  bool window_too_wide = false;  ///< a prefill's window reaches one token too far back
  bool offsets_absent = false;   ///< an absent pick gets the offset too
};

void launch_index_build_variant(const IndexBuildArgs& args, const IndexBuildVariant& variant, cudaStream_t stream);

}  // namespace attndiff::kernels::mutants
