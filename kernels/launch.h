#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace attndiff::kernels {

/// Throws unless `status` is success. Out of memory and a defective launch are Error(internal), a missing device or a
/// driver older than the runtime Error(unavailable); the message names the call, the source line and CUDA's own text.
void check(cudaError_t status, const char* call, const char* file, int line);

#define ATTNDIFF_CUDA(call) ::attndiff::kernels::check((call), #call, __FILE__, __LINE__)

/// Blocks of `per_block` items that cover `count` items.
[[nodiscard]] constexpr unsigned blocks_for(std::int64_t count, std::int64_t per_block) noexcept {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

}  // namespace attndiff::kernels
