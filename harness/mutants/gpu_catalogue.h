#pragma once

#include <vector>

#include "harness/mutants/mutant.h"

namespace attndiff {

/// Faults and controls of the CUDA implementation, each with other kernels or host steps in place of its own, run on
/// GPU 0; names are unique among them. Empty in a build without CUDA.
[[nodiscard]] const std::vector<Mutant>& gpu_mutant_catalogue();

/// Whether a mutant runs at released geometry, which takes seconds instead of a fraction of one.
[[nodiscard]] bool at_released_geometry(const Mutant& mutant);

}  // namespace attndiff
