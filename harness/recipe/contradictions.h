#pragma once

#include <string>
#include <vector>

#include "harness/recipe/recipe.h"

namespace attndiff {

/// Everything in a recipe that contradicts itself or asks for a call that attention refuses, one sentence each: the
/// configuration's violations, gaps between steps, slots that no earlier layer fills, weights that cannot be stored as
/// asked. Empty when the recipe is sound.
[[nodiscard]] std::vector<std::string> contradictions(const Recipe& recipe);

}  // namespace attndiff
