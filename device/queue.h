#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace attndiff::device {

/// A CUDA stream of the current GPU, not ordered with the default stream.
class Queue {
 public:
  Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();

  [[nodiscard]] cudaStream_t handle() const noexcept { return stream_; }
  /// Waits for everything enqueued so far; throws what went wrong in it.
  void wait() const;

 private:
  cudaStream_t stream_ = nullptr;
};

/// A point in a queue that the host can wait for.
class Marker {
 public:
  Marker();
  Marker(const Marker&) = delete;
  Marker& operator=(const Marker&) = delete;
  ~Marker();

  void record(cudaStream_t stream) const;
  void wait() const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// Copies ordered on `stream`. Pageable host memory may be reused when the call returns; page-locked memory may not
/// before the copy has run.
void copy_to_device(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
void copy_to_host(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
/// `copy_to_host`, and waits until it has run.
void copy_to_host_and_wait(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
void copy_on_device(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
void clear(void* memory, std::size_t bytes, cudaStream_t stream);

}  // namespace attndiff::device
