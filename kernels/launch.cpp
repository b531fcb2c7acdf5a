#include "kernels/launch.h"

#include <string>
#include <string_view>

#include "reference/contract/error.h"

namespace attndiff::kernels {
namespace {

ErrorKind kind_of(cudaError_t status) noexcept {
  switch (status) {
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorStubLibrary:
      return ErrorKind::unavailable;
    default:
      return ErrorKind::internal;
  }
}

}  // namespace

void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) {
    return;
  }
  // Clears the thread's last error, so that a later check does not report this one again.
  static_cast<void>(cudaGetLastError());
  std::string_view name(file);
  name.remove_prefix(name.find_last_of('/') + 1);
  throw Error(kind_of(status), {.file = {},
                                .object = std::string(name) + ":" + std::to_string(line),
                                .problem = std::string("CUDA call failed: ") + call,
                                .expected = "cudaSuccess",
                                .found = std::string(cudaGetErrorName(status)) + ", " + cudaGetErrorString(status)});
}

}  // namespace attndiff::kernels
