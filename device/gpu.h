#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace attndiff::device {

/// One GPU and the CUDA versions around it.
struct Gpu {
  int ordinal = 0;
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t shared_bytes = 0;  ///< most dynamic shared memory a block can be given
  int driver_version = 0;        ///< newest CUDA version the driver supports, 13000 is 13.0
  int runtime_version = 0;
};

/// The GPU of that ordinal, made current. Throws Error(unavailable) with the reason: no driver, no GPU, a driver older
/// than the runtime, no GPU of that ordinal, a GPU the kernels were not built for.
[[nodiscard]] Gpu require_gpu(int ordinal);

/// Why that GPU cannot be used here, or nothing where it can.
[[nodiscard]] std::optional<std::string> unavailable_reason(int ordinal);

/// "NVIDIA H200, compute 9.0, 132 multiprocessors, CUDA driver 13.0, runtime 13.0".
[[nodiscard]] std::string describe(const Gpu& gpu);

}  // namespace attndiff::device
