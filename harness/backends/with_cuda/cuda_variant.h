#pragma once

#include <memory>
#include <string>

#include "device/runtime.h"
#include "harness/backend.h"

namespace attndiff {

/// The CUDA implementation with other launches or options, and with a plan that declares `arithmetic`, under any name.
/// Throws Error(unavailable) where that GPU cannot be used.
[[nodiscard]] std::unique_ptr<Backend> make_cuda_variant(std::string name, int ordinal, device::RuntimeOptions options,
                                                         Arithmetic arithmetic);

}  // namespace attndiff
