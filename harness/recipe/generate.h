#pragma once

#include <string>

#include "harness/fixture/writer.h"
#include "harness/recipe/recipe.h"

namespace attndiff {

/// Writes the recipe's fixture: configuration, weights, inputs and declared state, nothing expected. Tensors are rules
/// wherever format 1 has one, or, with RuleForm::values, the values of these. Equal recipes give identical bytes; one
/// tensor is in memory at a time. Throws Error(output) where it cannot be written.
void generate(const Recipe& recipe, const std::string& out_path, RuleForm rules = RuleForm::rule);

}  // namespace attndiff
