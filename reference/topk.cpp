#include "reference/topk.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "reference/contract/error.h"
#include "reference/topk_detail.h"

namespace attndiff::reference {
namespace {

/// A value's rank as an integer beside its index: one comparison instead of three, with the same outcome.
struct Ranked {
  std::int32_t rank;
  std::int32_t index;
};

/// Orders as `(isnan(a) && !isnan(b)) || a > b` does: every NaN alike and above +inf, -0 equal to +0.
std::int32_t rank_of(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = static_cast<std::int32_t>(bits & 0x7fffffffU);
  if (magnitude > 0x7f800000) {
    return std::numeric_limits<std::int32_t>::max();
  }
  return bits >> 31U != 0 ? -magnitude : magnitude;
}

std::vector<Ranked> ranked(std::span<const float> values) {
  std::vector<Ranked> items(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    items[i] = {rank_of(values[i]), static_cast<std::int32_t>(i)};
  }
  return items;
}

void refuse_bad_k(std::size_t n, std::int64_t k) {
  if (n > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(ErrorKind::refused, {"", "topk", "row is too long", "at most 2147483647 values", std::to_string(n)});
  }
  if (k < 0 || static_cast<std::uint64_t>(k) > n) {
    throw Error(ErrorKind::refused,
                {"", "topk", "k is out of range", "0 <= k <= " + std::to_string(n), std::to_string(k)});
  }
}

}  // namespace

detail::TracedSet detail::traced_topk_set(std::span<const float> values, std::int64_t k) {
  refuse_bad_k(values.size(), k);
  const auto count = static_cast<std::size_t>(k);
  std::vector<Ranked> items = ranked(values);
  TracedSet result;
  result.path = select_best(std::span<Ranked>(items), count,
                            [](const Ranked& a, const Ranked& b) noexcept { return a.rank > b.rank; });
  result.indices.resize(count);
  std::transform(items.begin(), items.begin() + k, result.indices.begin(),
                 [](const Ranked& item) { return item.index; });
  std::sort(result.indices.begin(), result.indices.end());
  return result;
}

std::vector<std::int32_t> topk_set(std::span<const float> values, std::int64_t k) {
  return detail::traced_topk_set(values, k).indices;
}

}  // namespace attndiff::reference
