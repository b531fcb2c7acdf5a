#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/launch.h"

namespace attndiff::kernels {

/// Launches `kernel` and checks the launch; `name` stands in the error message.
template <typename... Parameters>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Parameters... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), name, __FILE__, __LINE__);
}

/// Lets a kernel use more dynamic shared memory than the 48 KiB every device gives without asking.
template <typename... Parameters>
void allow_shared(void (*kernel)(Parameters...), std::size_t bytes) {
  constexpr std::size_t kAlwaysAllowed = 48 * 1024;
  if (bytes > kAlwaysAllowed) {
    ATTNDIFF_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  }
}

}  // namespace attndiff::kernels
