#include "kernels/launch.cuh"
#include "kernels/mutants/stray.h"

namespace attndiff::kernels::mutants {
namespace {

__device__ std::int64_t now() {
  std::int64_t nanoseconds = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

__global__ void delay(std::int64_t nanoseconds) {
  const std::int64_t end = now() + nanoseconds;
  while (now() < end) {
  }
}

__global__ void stray_store(float* address) { *address = 1.0F; }

}  // namespace

void launch_delay(std::int64_t nanoseconds, cudaStream_t stream) {
  launch("delay", delay, 1, 1, 0, stream, nanoseconds);
}

void launch_stray_store(cudaStream_t stream) {
  constexpr std::uintptr_t kUnmapped = 4096;
  launch("stray_store", stray_store, 1, 1, 0, stream, reinterpret_cast<float*>(kUnmapped));
}

}  // namespace attndiff::kernels::mutants
