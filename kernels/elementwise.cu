#include "kernels/elementwise.h"
#include "kernels/launch.cuh"
#include "kernels/math.cuh"

namespace attndiff::kernels {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMostBlocks = 4096;  // enough to fill any GPU; the rest is looped over

__device__ __forceinline__ std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::int64_t index_step() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

__global__ void __launch_bounds__(kThreads) scale_values(ScaleArgs a) {
  for (std::int64_t i = first_index(); i < a.count; i += index_step()) {
    a.y[i] = narrow(widen(a.x[i]) * a.scale);
  }
}

__global__ void __launch_bounds__(kThreads) fill(float* values, std::int64_t count, float value) {
  for (std::int64_t i = first_index(); i < count; i += index_step()) {
    values[i] = value;
  }
}

__global__ void __launch_bounds__(kThreads) poison(unsigned* words, std::size_t bytes) {
  const auto whole = static_cast<std::int64_t>(bytes / sizeof(unsigned));
  for (std::int64_t i = first_index(); i < whole; i += index_step()) {
    words[i] = kPoisonWord;
  }
  const std::size_t rest = bytes % sizeof(unsigned);
  if (first_index() == 0 && rest > 0) {
    auto* tail = reinterpret_cast<unsigned char*>(words + whole);
    for (std::size_t b = 0; b < rest; ++b) {
      tail[b] = static_cast<unsigned char>(kPoisonWord >> (8 * b));
    }
  }
}

unsigned grid_for(std::int64_t count) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  return blocks < kMostBlocks ? static_cast<unsigned>(blocks) : kMostBlocks;
}

}  // namespace

void launch_scale(const ScaleArgs& args, cudaStream_t stream) {
  if (args.count > 0) {
    launch("scale_values", scale_values, grid_for(args.count), kThreads, 0, stream, args);
  }
}

void launch_fill(float* values, std::int64_t count, float value, cudaStream_t stream) {
  if (count > 0) {
    launch("fill", fill, grid_for(count), kThreads, 0, stream, values, count, value);
  }
}

void launch_poison(void* memory, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0) {
    const auto words = static_cast<std::int64_t>(bytes / sizeof(unsigned)) + 1;
    launch("poison", poison, grid_for(words), kThreads, 0, stream, static_cast<unsigned*>(memory), bytes);
  }
}

}  // namespace attndiff::kernels
