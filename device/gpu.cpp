#include "device/gpu.h"

#include <cuda_runtime_api.h>

#include "kernels/elementwise.h"
#include "kernels/launch.h"
#include "reference/contract/error.h"

namespace attndiff::device {
namespace {

std::string version_text(int version) {
  constexpr int kMajor = 1000;
  constexpr int kMinor = 10;
  return std::to_string(version / kMajor) + "." + std::to_string(version % kMajor / kMinor);
}

[[noreturn]] void unavailable(std::string problem, std::string expected, std::string found) {
  throw Error(ErrorKind::unavailable, {.file = {},
                                       .object = "CUDA",
                                       .problem = std::move(problem),
                                       .expected = std::move(expected),
                                       .found = std::move(found)});
}

void require_driver(const Gpu& gpu) {
  if (gpu.driver_version == 0) {
    unavailable("no NVIDIA driver is installed", {}, {});
  }
  if (gpu.driver_version < gpu.runtime_version) {
    unavailable("the NVIDIA driver is too old", "CUDA " + version_text(gpu.runtime_version) + " or newer",
                "CUDA " + version_text(gpu.driver_version));
  }
}

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  ATTNDIFF_CUDA(cudaDeviceGetAttribute(&value, which, ordinal));
  return value;
}

/// The smallest launch tells whether the program holds machine code for this GPU.
void require_kernels(const Gpu& gpu) {
  void* word = nullptr;
  ATTNDIFF_CUDA(cudaMalloc(&word, sizeof(std::uint32_t)));
  try {
    kernels::launch_poison(word, sizeof(std::uint32_t), nullptr);
    ATTNDIFF_CUDA(cudaStreamSynchronize(nullptr));
  } catch (const Error& e) {
    static_cast<void>(cudaFree(word));
    unavailable("the kernels do not run on this GPU: " + e.details().found, {},
                gpu.name + ", compute " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor));
  }
  ATTNDIFF_CUDA(cudaFree(word));
}

}  // namespace

Gpu require_gpu(int ordinal) {
  Gpu gpu;
  gpu.ordinal = ordinal;
  ATTNDIFF_CUDA(cudaDriverGetVersion(&gpu.driver_version));
  ATTNDIFF_CUDA(cudaRuntimeGetVersion(&gpu.runtime_version));
  require_driver(gpu);
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    static_cast<void>(cudaGetLastError());
    unavailable("no GPU is usable", "a CUDA device", status == cudaSuccess ? "none" : cudaGetErrorString(status));
  }
  if (ordinal < 0 || ordinal >= count) {
    unavailable("there is no GPU " + std::to_string(ordinal), "0 to " + std::to_string(count - 1), {});
  }
  ATTNDIFF_CUDA(cudaSetDevice(ordinal));
  cudaDeviceProp properties{};
  ATTNDIFF_CUDA(cudaGetDeviceProperties(&properties, ordinal));
  gpu.name = static_cast<const char*>(properties.name);
  gpu.memory_bytes = properties.totalGlobalMem;
  gpu.major = attribute(cudaDevAttrComputeCapabilityMajor, ordinal);
  gpu.minor = attribute(cudaDevAttrComputeCapabilityMinor, ordinal);
  gpu.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, ordinal);
  gpu.shared_bytes = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal));
  require_kernels(gpu);
  return gpu;
}

std::optional<std::string> unavailable_reason(int ordinal) {
  try {
    static_cast<void>(require_gpu(ordinal));
    return std::nullopt;
  } catch (const Error& e) {
    return e.what();
  }
}

std::string describe(const Gpu& gpu) {
  return gpu.name + ", compute " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) + ", " +
         std::to_string(gpu.multiprocessors) + " multiprocessors, CUDA driver " + version_text(gpu.driver_version) +
         ", runtime " + version_text(gpu.runtime_version);
}

}  // namespace attndiff::device
