#include "kernels/launch.cuh"
#include "kernels/window.h"

namespace attndiff::kernels {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) ring_write(RingWriteArgs a, std::int64_t first_kept) {
  const std::int64_t t = first_kept + blockIdx.x;
  const std::int64_t slot = (a.step->ring_slot + t) % a.window;
  for (std::int64_t d = threadIdx.x; d < a.width; d += kThreads) {
    a.ring[slot * a.width + d] = a.kv[t * a.width + d];
  }
}

__device__ __forceinline__ std::int64_t window_entry(const IndexBuildArgs& a, std::int64_t t, std::int64_t column) {
  std::int64_t entry = 0;
  std::int64_t newest = 0;
  if (a.prefill) {
    const std::int64_t oldest = t - a.window + 1;
    entry = (oldest > 0 ? oldest : 0) + column;
    newest = t;
  } else {
    entry = (a.step->ring_slot + 1 + column) % a.window;
    newest = a.step->position;
  }
  return entry > newest ? -1 : entry;
}

__global__ void __launch_bounds__(kThreads) index_build(IndexBuildArgs a) {
  const std::int64_t t = blockIdx.x;
  const std::int64_t columns = a.window_columns + a.selection_columns;
  for (std::int64_t j = threadIdx.x; j < columns; j += kThreads) {
    std::int64_t entry = 0;
    if (j < a.window_columns) {
      entry = window_entry(a, t, j);
    } else {
      const std::int32_t pick = a.selection[t * a.selection_columns + j - a.window_columns];
      entry = pick < 0 ? pick : pick + a.offset;
    }
    a.idx[t * columns + j] = static_cast<std::int32_t>(entry);
  }
}

}  // namespace

void launch_ring_write(const RingWriteArgs& args, cudaStream_t stream) {
  const std::int64_t kept = args.tokens < args.window ? args.tokens : args.window;
  if (kept > 0) {
    launch("ring_write", ring_write, static_cast<unsigned>(kept), kThreads, 0, stream, args, args.tokens - kept);
  }
}

void launch_index_build(const IndexBuildArgs& args, cudaStream_t stream) {
  if (args.tokens > 0 && args.window_columns + args.selection_columns > 0) {
    launch("index_build", index_build, static_cast<unsigned>(args.tokens), kThreads, 0, stream, args);
  }
}

}  // namespace attndiff::kernels
