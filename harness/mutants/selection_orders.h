#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

/// Ways to choose the k best positions that are not torch's.
namespace attndiff::mutants {

/// The first k of `count` positions by `before`, ascending.
template <typename Before>
[[nodiscard]] std::vector<std::int32_t> first_k(std::size_t count, std::int64_t k, Before before) {
  std::vector<std::int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), before);
  order.resize(static_cast<std::size_t>(k));
  std::sort(order.begin(), order.end());
  return order;
}

[[nodiscard]] inline float at(std::span<const float> scores, std::int32_t p) {
  return scores[static_cast<std::size_t>(p)];
}

/// Equal scores by the highest position.
[[nodiscard]] inline std::vector<std::int32_t> last_index_topk(std::span<const float> s, std::int64_t k) {
  return first_k(s.size(), k, [&](auto a, auto b) { return at(s, a) > at(s, b) || (at(s, a) == at(s, b) && a > b); });
}

/// Equal scores by the lowest position: what a stable sort gives.
[[nodiscard]] inline std::vector<std::int32_t> lowest_index_topk(std::span<const float> s, std::int64_t k) {
  return first_k(s.size(), k, [&](auto a, auto b) { return at(s, a) > at(s, b); });
}

/// Masked scores, -inf, before all others.
[[nodiscard]] inline std::vector<std::int32_t> masked_first_topk(std::span<const float> s, std::int64_t k) {
  return first_k(s.size(), k, [&](auto a, auto b) {
    const bool a_masked = std::isinf(at(s, a));
    const bool b_masked = std::isinf(at(s, b));
    return a_masked != b_masked ? a_masked : at(s, a) > at(s, b);
  });
}

}  // namespace attndiff::mutants
