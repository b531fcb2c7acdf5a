#include "device/memory.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "kernels/launch.h"
#include "reference/contract/error.h"

namespace attndiff::device {
namespace {

[[noreturn]] void out_of_memory(std::size_t bytes, std::string_view what) {
  static_cast<void>(cudaGetLastError());
  std::size_t free = 0;
  std::size_t total = 0;
  static_cast<void>(cudaMemGetInfo(&free, &total));
  throw Error(ErrorKind::unavailable, {.file = {},
                                       .object = std::string(what),
                                       .problem = "the GPU is out of memory",
                                       .expected = std::to_string(bytes) + " bytes",
                                       .found = std::to_string(free) + " bytes free of " + std::to_string(total)});
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::size_t bytes, std::string_view what) : bytes_(bytes) {
  if (bytes == 0) {
    return;
  }
  const cudaError_t status = cudaMalloc(&data_, bytes);
  if (status == cudaErrorMemoryAllocation) {
    out_of_memory(bytes, what);
  }
  ATTNDIFF_CUDA(status);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

DeviceBuffer::~DeviceBuffer() { release(); }

void DeviceBuffer::release() noexcept {
  if (data_ != nullptr) {
    static_cast<void>(cudaFree(std::exchange(data_, nullptr)));
  }
  bytes_ = 0;
}

PinnedBuffer::PinnedBuffer(std::size_t bytes, std::string_view what) : bytes_(bytes) {
  if (bytes == 0) {
    return;
  }
  if (cudaMallocHost(&data_, bytes) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw Error(ErrorKind::unavailable, {.file = {},
                                         .object = std::string(what),
                                         .problem = "page-locked host memory could not be had",
                                         .expected = std::to_string(bytes) + " bytes",
                                         .found = {}});
  }
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

PinnedBuffer::~PinnedBuffer() { release(); }

void PinnedBuffer::release() noexcept {
  if (data_ != nullptr) {
    static_cast<void>(cudaFreeHost(std::exchange(data_, nullptr)));
  }
  bytes_ = 0;
}

}  // namespace attndiff::device
