#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "reference/contract/weights.h"

namespace attndiff {

class FixtureReader;

/// Layers' weights of one fixture, read when needed and kept within a budget: the least recently used go first, so
/// that a fixture of any size runs in bounded memory. One layer is always kept.
class WeightCache {
 public:
  static constexpr std::size_t kDefaultBudget = std::size_t{4} << 30U;  ///< bytes

  explicit WeightCache(const FixtureReader& fixture, std::size_t budget = kDefaultBudget)
      : fixture_(fixture), budget_(budget) {}

  /// The weights of a layer, by its index in the fixture; shared, so that eviction never pulls them from under a user.
  [[nodiscard]] std::shared_ptr<const LayerWeights> get(std::size_t layer);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Entry {
    std::size_t layer;
    std::size_t bytes;
    std::shared_ptr<const LayerWeights> weights;
  };

  const FixtureReader& fixture_;
  std::size_t budget_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace attndiff
