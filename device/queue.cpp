#include "device/queue.h"

#include "kernels/launch.h"

namespace attndiff::device {

Queue::Queue() { ATTNDIFF_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }

Queue::~Queue() {
  static_cast<void>(cudaStreamSynchronize(stream_));
  static_cast<void>(cudaStreamDestroy(stream_));
}

void Queue::wait() const { ATTNDIFF_CUDA(cudaStreamSynchronize(stream_)); }

Marker::Marker() { ATTNDIFF_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }

Marker::~Marker() { static_cast<void>(cudaEventDestroy(event_)); }

void Marker::record(cudaStream_t stream) const { ATTNDIFF_CUDA(cudaEventRecord(event_, stream)); }

void Marker::wait() const { ATTNDIFF_CUDA(cudaEventSynchronize(event_)); }

void copy_to_device(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0) {
    ATTNDIFF_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
  }
}

void copy_to_host(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0) {
    ATTNDIFF_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream));
  }
}

void copy_to_host_and_wait(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  copy_to_host(to, from, bytes, stream);
  const Marker copied;
  copied.record(stream);
  copied.wait();
}

void copy_on_device(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0) {
    ATTNDIFF_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
  }
}

void clear(void* memory, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0) {
    ATTNDIFF_CUDA(cudaMemsetAsync(memory, 0, bytes, stream));
  }
}

}  // namespace attndiff::device
