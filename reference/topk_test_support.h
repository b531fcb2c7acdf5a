#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace attndiff::reference {

/// True where the standard library is the one torch's wheels are built with, so that its algorithms can be the oracle.
#if defined(__GLIBCXX__)
inline constexpr bool kLibstdcxx = true;
#else
inline constexpr bool kLibstdcxx = false;
#endif

/// The set torch's CPU topk picks, by the standard library's own algorithms called the way torch calls them; valid on
/// libstdc++ only.
inline std::vector<std::int32_t> library_topk_set(std::span<const float> values, std::size_t k) {
  using Pair = std::pair<float, std::int64_t>;
  std::vector<Pair> queue(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    queue[i] = {values[i], static_cast<std::int64_t>(i)};
  }
  const auto before = [](const Pair& a, const Pair& b) {
    return (std::isnan(a.first) && !std::isnan(b.first)) || a.first > b.first;
  };
  const auto end_of_set = queue.begin() + static_cast<std::ptrdiff_t>(k);
  if (k > 0 && k * 64 <= values.size()) {
    std::partial_sort(queue.begin(), end_of_set, queue.end(), before);
  } else if (k > 0) {
    std::nth_element(queue.begin(), end_of_set - 1, queue.end(), before);
  }
  std::vector<std::int32_t> set(k);
  std::transform(queue.begin(), end_of_set, set.begin(),
                 [](const Pair& p) { return static_cast<std::int32_t>(p.second); });
  std::sort(set.begin(), set.end());
  return set;
}

}  // namespace attndiff::reference
