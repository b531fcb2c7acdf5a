#include "kernels/launch.cuh"
#include "kernels/mutants/window.h"

namespace attndiff::kernels::mutants {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) ring_write_past_the_wrap(RingWriteArgs a, std::int64_t first_kept) {
  const std::int64_t t = first_kept + blockIdx.x;
  const std::int64_t position = a.step->position + t;
  const std::int64_t slot = (position < a.window ? position : position + 1) % a.window;
  for (std::int64_t d = threadIdx.x; d < a.width; d += kThreads) {
    a.ring[slot * a.width + d] = a.kv[t * a.width + d];
  }
}

__device__ std::int64_t window_entry(const IndexBuildArgs& a, const IndexBuildVariant& v, std::int64_t t,
                                     std::int64_t column) {
  if (!a.prefill) {
    const std::int64_t slot = (a.step->ring_slot + 1 + column) % a.window;
    return slot > a.step->position ? -1 : slot;
  }
  const std::int64_t oldest = t - a.window + (v.window_too_wide ? 0 : 1);
  const std::int64_t row = (oldest > 0 ? oldest : 0) + column;
  return row > t ? -1 : row;
}

__global__ void __launch_bounds__(kThreads) index_build_variant(IndexBuildArgs a, IndexBuildVariant v) {
  const std::int64_t t = blockIdx.x;
  const std::int64_t columns = a.window_columns + a.selection_columns;
  for (std::int64_t j = threadIdx.x; j < columns; j += kThreads) {
    std::int64_t entry = 0;
    if (j < a.window_columns) {
      entry = window_entry(a, v, t, j);
    } else {
      const std::int32_t pick = a.selection[t * a.selection_columns + j - a.window_columns];
      entry = pick < 0 && !v.offsets_absent ? pick : pick + a.offset;
    }
    a.idx[t * columns + j] = static_cast<std::int32_t>(entry);
  }
}

}  // namespace

void launch_ring_write_past_the_wrap(const RingWriteArgs& args, cudaStream_t stream) {
  const std::int64_t kept = args.tokens < args.window ? args.tokens : args.window;
  if (kept > 0) {
    launch("ring_write_past_the_wrap", ring_write_past_the_wrap, static_cast<unsigned>(kept), kThreads, 0, stream, args,
           args.tokens - kept);
  }
}

void launch_index_build_variant(const IndexBuildArgs& args, const IndexBuildVariant& variant, cudaStream_t stream) {
  if (args.tokens > 0 && args.window_columns + args.selection_columns > 0) {
    launch("index_build_variant", index_build_variant, static_cast<unsigned>(args.tokens), kThreads, 0, stream, args,
           variant);
  }
}

}  // namespace attndiff::kernels::mutants
