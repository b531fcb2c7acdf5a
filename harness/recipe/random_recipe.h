#pragma once

#include <cstdint>

#include "harness/recipe/recipe.h"

namespace attndiff {

struct RandomRecipe {
  Recipe recipe;
  /// Attention scores and sinks have the size that free mode's tolerances are made for, and so have the heads' results
  /// beside one another. Where they have not, a unit in q moves a softmax weight by many, and only lockstep, whose
  /// bounds follow the values, can judge.
  bool ordinary = true;
};

/// A small sound recipe drawn from a seed; equal seeds give equal recipes on every system. One to four layers of any
/// kinds and ratios 1 to 5 under either rule for index keys, stored as bf16 or e4m3; a prefill of odd or even length,
/// shorter than a group, as long as the window or several windows, then decode steps; or decode steps from declared
/// state, up to far positions. Inputs may be tiny, large, repeated, constant, heavy-tailed, denormal or zero in some
/// tokens; weights vary in size and mean; one recipe of three is not ordinary.
[[nodiscard]] RandomRecipe random_recipe(std::uint64_t seed);

}  // namespace attndiff
