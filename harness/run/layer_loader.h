#pragma once

#include <cstddef>

#include "harness/backend.h"
#include "harness/run/weight_cache.h"

namespace attndiff {

class FixtureReader;

/// Reads what one layer's call needs, one layer of one step at a time: besides the weights that the cache keeps, one
/// call's tensors are in memory.
class LayerLoader {
 public:
  explicit LayerLoader(const FixtureReader& fixture) : fixture_(fixture), weights_(fixture) {}

  [[nodiscard]] LayerInput load(std::size_t step, std::size_t layer);

 private:
  const FixtureReader& fixture_;
  WeightCache weights_;
};

}  // namespace attndiff
