#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

/// The parts of topk_set, open to tests. Which of several equal values a selection keeps depends on every exchange made
/// on the way, so each function fixes its own order of comparisons and moves. docs/topk.md explains the order.
///
/// `Before` is a strict weak order on items: before(a, b) when `a` ranks strictly above `b`. Equal items stay apart
/// only by where they lie.
namespace attndiff::reference::detail {

/// How a selection came about.
enum class SelectionPath : std::uint8_t {
  empty,         ///< k == 0
  partial_sort,  ///< one heap of k over the row: k * 64 <= n
  nth_element,   ///< quickselect, finished inside its limit of rounds
  depth_limit,   ///< quickselect that used up its rounds, finished by a heap
};

/// Fills the hole at `top` of a heap whose top is the lowest-ranking item: the hole sinks to the bottom along the
/// lower-ranking child (the right one of two equals), then `value` rises from there to its place, at most to `top`.
template <typename Item, typename Before>
void refill(std::span<Item> heap, std::size_t top, Item value, const Before& before) {
  std::size_t hole = top;
  for (std::size_t right = 2 * hole + 2; right <= heap.size(); right = 2 * hole + 2) {
    const bool only_left = right == heap.size();
    const std::size_t child = only_left || before(heap[right], heap[right - 1]) ? right - 1 : right;
    heap[hole] = heap[child];
    hole = child;
  }
  while (hole > top) {
    const std::size_t parent = (hole - 1) / 2;
    if (!before(heap[parent], value)) {
      break;
    }
    heap[hole] = heap[parent];
    hole = parent;
  }
  heap[hole] = value;
}

/// Leaves in `kept` the kept.size() best items of `kept` and `rest` together. An item equal to the worst one kept does
/// not enter.
template <typename Item, typename Before>
void keep_best(std::span<Item> kept, std::span<const Item> rest, const Before& before) {
  for (std::size_t top = kept.size() / 2; top-- > 0;) {
    refill(kept, top, kept[top], before);
  }
  for (const Item& item : rest) {
    if (before(item, kept.front())) {
      refill(kept, 0, item, before);
    }
  }
}

/// Position of the middle one of three items; among equals the order of the questions decides.
template <typename Item, typename Before>
[[nodiscard]] std::size_t median_position(std::span<const Item> items, std::size_t a, std::size_t b, std::size_t c,
                                          const Before& before) {
  const bool a_leads = before(items[a], items[b]);
  const std::size_t upper = a_leads ? a : b;
  const std::size_t lower = a_leads ? b : a;
  if (before(items[lower], items[c])) {
    return lower;
  }
  return before(items[upper], items[c]) ? c : upper;
}

/// Splits `items` (4 or more) about the median of its second, middle and last item. Returns the cut: no item ahead of
/// it ranks below the pivot, no item from it on ranks above. The pivot ends up in front.
template <typename Item, typename Before>
[[nodiscard]] std::size_t split(std::span<Item> items, const Before& before) {
  const std::size_t size = items.size();
  std::swap(items[0], items[median_position(std::span<const Item>(items), 1, size / 2, size - 1, before)]);
  const Item pivot = items[0];
  // No bounds are needed: the two other items of the three stop both scans.
  std::size_t low = 1;
  std::size_t high = size - 1;
  for (;; ++low, --high) {
    while (before(items[low], pivot)) {
      ++low;
    }
    while (before(pivot, items[high])) {
      --high;
    }
    if (low >= high) {
      return low;
    }
    std::swap(items[low], items[high]);
  }
}

/// The part of a row in which the nth item still lies: everything ahead of `first` ranks no lower, everything from
/// `last` on no higher.
struct Remainder {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Splits the part that holds position `nth` until it has 3 items or fewer, or `rounds` splits were made.
template <typename Item, typename Before>
[[nodiscard]] Remainder narrow(std::span<Item> items, std::size_t nth, int rounds, const Before& before) {
  Remainder part{0, items.size()};
  for (; part.last - part.first > 3 && rounds > 0; --rounds) {
    const std::size_t cut = part.first + split(items.subspan(part.first, part.last - part.first), before);
    (cut <= nth ? part.first : part.last) = cut;
  }
  return part;
}

/// Sorts a few items, equal ones in the order they lie.
template <typename Item, typename Before>
void sort_few(std::span<Item> items, const Before& before) {
  for (std::size_t end = 1; end < items.size(); ++end) {
    for (std::size_t i = end; i > 0 && before(items[i], items[i - 1]); --i) {
      std::swap(items[i], items[i - 1]);
    }
  }
}

/// Splits that a quickselect over `n` items may make: 2 * floor(log2 n).
[[nodiscard]] constexpr int round_limit(std::size_t n) noexcept {
  return n == 0 ? 0 : 2 * (static_cast<int>(std::bit_width(n)) - 1);
}

/// Quickselect: moves the `k` best items (1 <= k <= size) to the front, in no particular order among themselves.
template <typename Item, typename Before>
SelectionPath quickselect(std::span<Item> items, std::size_t k, int rounds, const Before& before) {
  const Remainder part = narrow(items, k - 1, rounds, before);
  if (part.last - part.first > 3) {
    const std::span<Item> undecided = items.subspan(part.first, part.last - part.first);
    const std::size_t wanted = k - part.first;
    keep_best(undecided.first(wanted), std::span<const Item>(undecided.subspan(wanted)), before);
    return SelectionPath::depth_limit;
  }
  sort_few(items.subspan(part.first, part.last - part.first), before);
  return SelectionPath::nth_element;
}

/// Moves the `k` items that torch's CPU topk picks to the front. Items behind them may be overwritten.
template <typename Item, typename Before>
SelectionPath select_best(std::span<Item> items, std::size_t k, const Before& before) {
  // torch 2.11, aten/src/ATen/native/TopKImpl.h: below this share of the row it sorts partially.
  constexpr std::size_t kPartialSortShare = 64;
  if (k == 0) {
    return SelectionPath::empty;
  }
  if (k * kPartialSortShare <= items.size()) {
    keep_best(items.first(k), std::span<const Item>(items.subspan(k)), before);
    return SelectionPath::partial_sort;
  }
  return quickselect(items, k, round_limit(items.size()), before);
}

/// topk_set with the way it was found.
struct TracedSet {
  std::vector<std::int32_t> indices;  ///< ascending
  SelectionPath path = SelectionPath::empty;
};
[[nodiscard]] TracedSet traced_topk_set(std::span<const float> values, std::int64_t k);

}  // namespace attndiff::reference::detail
