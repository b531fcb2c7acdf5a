#pragma once

#include <string>

#include "harness/mutants/faulty_backend.h"
#include "harness/recipe/draw.h"

namespace attndiff::mutants {

/// A correct implementation whose every sum runs in another order than the reference's, in float32.
struct Perturbation {
  std::string text;  ///< which orders, in words
  MakeBackend make;
};

/// Draws the orders: products and their dots backwards, in chunks, in lanes or pairwise; norms, pooled groups and the
/// index heads from the last term; attention in one tile or in several, which the plan declares as splits.
[[nodiscard]] Perturbation random_perturbation(Draw& draw);

}  // namespace attndiff::mutants
