#pragma once

#include <vector>

#include "harness/mutants/mutant.h"

namespace attndiff::mutants {

/// The GPU catalogue's parts, each in a file of its own.
[[nodiscard]] std::vector<Mutant> gpu_row_mutants();
[[nodiscard]] std::vector<Mutant> gpu_product_mutants();
[[nodiscard]] std::vector<Mutant> gpu_quantiser_mutants();
[[nodiscard]] std::vector<Mutant> gpu_index_mutants();
[[nodiscard]] std::vector<Mutant> gpu_selection_mutants();
[[nodiscard]] std::vector<Mutant> gpu_attention_mutants();
[[nodiscard]] std::vector<Mutant> gpu_execution_mutants();

/// All of them, and some of them once more at released geometry.
[[nodiscard]] std::vector<Mutant> all_gpu_mutants();

}  // namespace attndiff::mutants
