#pragma once

#include <string>

#include "harness/recipe/recipe.h"

namespace attndiff {

/// Writes the recipe's fixture: configuration, weights, inputs and declared state, nothing expected. Tensors are rules
/// wherever format 1 has one. Equal recipes give identical bytes. Throws Error(output) where it cannot be written.
void generate(const Recipe& recipe, const std::string& out_path);

}  // namespace attndiff
