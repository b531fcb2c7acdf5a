#include "reference/contract/weights.h"

#include <utility>

#include "reference/contract/error.h"

namespace attndiff {

const Weight& LayerWeights::at(std::string_view name) const {
  const auto it = weights_.find(name);
  if (it == weights_.end()) {
    throw Error(ErrorKind::internal, "the layer has no weight " + std::string(name));
  }
  return it->second;
}

void LayerWeights::set(std::string name, Weight weight) {
  weights_.insert_or_assign(std::move(name), std::move(weight));
}

std::size_t LayerWeights::bytes() const noexcept {
  std::size_t total = 0;
  for (const auto& [name, weight] : weights_) {
    total += weight.values.bytes() + weight.scales.bytes();
  }
  return total;
}

}  // namespace attndiff
