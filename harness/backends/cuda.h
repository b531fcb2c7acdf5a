#pragma once

#include <memory>
#include <string>

#include "harness/backend.h"

namespace attndiff {

/// The CUDA implementation on the GPU of that ordinal, under the name it was asked for by. Throws Error(unavailable)
/// where that GPU cannot be used.
[[nodiscard]] std::unique_ptr<Backend> make_cuda_backend(std::string name, int ordinal, int threads);

}  // namespace attndiff
