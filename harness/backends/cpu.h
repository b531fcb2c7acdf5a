#pragma once

#include <memory>

#include "harness/backend.h"
#include "reference/deepseek_v41/steps.h"

namespace attndiff {

/// The Eigen reference as a backend. `threads` 0 takes the machine's; results do not depend on it.
[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(int threads);

/// The same with other steps under another name: another summation order, or a known fault.
[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(int threads, std::string name, deepseek_v41::Steps steps);

}  // namespace attndiff
