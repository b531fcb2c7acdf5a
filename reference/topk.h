#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attndiff::reference {

/// The set of indices that torch's CPU topk(k, largest) picks from one row, ascending. Ties, NaN and the depth-limit
/// fallback come out as torch 2.11 on libstdc++ leaves them, on every standard library.
/// `k` must lie in [0, values.size()]; anything else throws Error(refused).
[[nodiscard]] std::vector<std::int32_t> topk_set(std::span<const float> values, std::int64_t k);

}  // namespace attndiff::reference
