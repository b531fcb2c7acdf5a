#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace attndiff::kernels::mutants {

/// Keeps the stream busy for at least that long.
void launch_delay(std::int64_t nanoseconds, cudaStream_t stream);

/// Stores to an address that is not mapped: the context is lost.
void launch_stray_store(cudaStream_t stream);

}  // namespace attndiff::kernels::mutants
