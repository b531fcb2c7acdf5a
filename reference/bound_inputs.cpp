#include "reference/bound_inputs.h"

#include <algorithm>
#include <cmath>

#include "reference/product.h"

namespace attndiff {

const std::vector<float>& WeightNorms::of(const std::string& name, reference::ThreadPool& pool) {
  std::vector<float>& norms = norms_[name];
  if (norms.empty()) {
    const Weight& weight = weights_->at(name);
    const std::int64_t rows = weight.values.shape()[0];
    const std::int64_t depth = weight.values.shape()[1];
    norms.resize(static_cast<std::size_t>(rows));
    pool.parallel_for((rows + reference::kPanelRows - 1) / reference::kPanelRows, [&](std::int64_t p) {
      const std::int64_t first = p * reference::kPanelRows;
      const std::int64_t count = std::min(reference::kPanelRows, rows - first);
      std::vector<float> panel(static_cast<std::size_t>(count * depth));
      reference::weight_rows(weight, first, count, panel);
      for (std::int64_t r = 0; r < count; ++r) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          sum += std::pow(static_cast<double>(panel[static_cast<std::size_t>(r * depth + k)]), 2);
        }
        norms[static_cast<std::size_t>(first + r)] = static_cast<float>(std::sqrt(sum));
      }
    });
  }
  return norms;
}

}  // namespace attndiff
