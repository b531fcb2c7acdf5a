#include "device/transfer.h"

#include <cuda_runtime_api.h>

#include "kernels/launch.h"

namespace attndiff::device {

void enqueue_copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes > 0) {
    ATTNDIFF_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream.handle)));
  }
}

}  // namespace attndiff::device
