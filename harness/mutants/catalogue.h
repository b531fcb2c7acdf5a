#pragma once

#include <vector>

#include "harness/mutants/mutant.h"

namespace attndiff::mutants {

/// The catalogue's parts, each in a file of its own.
[[nodiscard]] std::vector<Mutant> rotary_mutants();
[[nodiscard]] std::vector<Mutant> norm_mutants();
[[nodiscard]] std::vector<Mutant> product_mutants();
[[nodiscard]] std::vector<Mutant> quantiser_mutants();
[[nodiscard]] std::vector<Mutant> window_mutants();
[[nodiscard]] std::vector<Mutant> compressor_mutants();
[[nodiscard]] std::vector<Mutant> index_mutants();
[[nodiscard]] std::vector<Mutant> selection_mutants();
[[nodiscard]] std::vector<Mutant> attention_mutants();
[[nodiscard]] std::vector<Mutant> candidate_mutants();
[[nodiscard]] std::vector<Mutant> process_mutants();

}  // namespace attndiff::mutants
