#include "harness/run/weight_cache.h"

#include <algorithm>

#include "harness/fixture/reader.h"

namespace attndiff {

std::shared_ptr<const LayerWeights> WeightCache::get(std::size_t layer) {
  const auto hit =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.layer == layer; });
  if (hit != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, hit);
    return entries_.front().weights;
  }
  auto weights = std::make_shared<const LayerWeights>(fixture_.weights(layer));
  const std::size_t size = weights->bytes();
  while (!entries_.empty() && bytes_ + size > budget_) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
  entries_.push_front({.layer = layer, .bytes = size, .weights = weights});
  bytes_ += size;
  return weights;
}

}  // namespace attndiff
