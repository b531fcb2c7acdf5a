// Rows that make quickselect use up its rounds. Random rows never do. They are built by M. D. McIlroy's method ("A
// Killer Adversary for Quicksort", Software: Practice and Experience 29(4), 1999): values are settled only while the
// algorithm asks about them, each time so that the split in progress separates as few items as possible.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "reference/topk.h"
#include "reference/topk_detail.h"
#include "reference/topk_test_support.h"

namespace attndiff::reference {
namespace {

using detail::SelectionPath;

/// Where the adversary's settled items rank: above all open ones, so that the selection proceeds behind them, or below.
enum class Settled { above, below };

/// Answers comparisons of items that have no value yet. Open items were only ever compared with settled ones, so any
/// values may be given to them afterwards, as long as they stay on the open side of all settled values.
class Adversary {
 public:
  Adversary(std::size_t n, Settled side) : order_(n), side_(side) {}

  bool before(std::size_t a, std::size_t b) {
    if (!order_[a] && !order_[b]) {
      settle(a == pivot_candidate_ ? a : b);
    }
    if (!order_[a]) {
      pivot_candidate_ = a;
    } else if (!order_[b]) {
      pivot_candidate_ = b;
    }
    const std::size_t rank_a = order_[a].value_or(kOpen);
    const std::size_t rank_b = order_[b].value_or(kOpen);
    return side_ == Settled::above ? rank_a < rank_b : rank_a > rank_b;
  }

  /// When the item was settled, counted from 0; nothing for an open one.
  [[nodiscard]] std::optional<std::size_t> order(std::size_t item) const { return order_[item]; }

 private:
  static constexpr std::size_t kOpen = std::numeric_limits<std::size_t>::max();

  void settle(std::size_t item) { order_[item] = settled_++; }

  std::vector<std::optional<std::size_t>> order_;
  std::size_t settled_ = 0;
  std::size_t pivot_candidate_ = kOpen;
  Settled side_;
};

/// What the items that stayed open become.
enum class Fill { equal, three_classes, ascending, random, infinite, nan };

float open_value(Fill fill, Settled side, std::size_t i, std::mt19937& random) {
  switch (fill) {
    case Fill::equal:
      return 0.0F;
    case Fill::three_classes:
      return static_cast<float>(i % 3);
    case Fill::ascending:
      return static_cast<float>(i);
    case Fill::random:
      return static_cast<float>(random() % 1000);
    case Fill::infinite:
      return side == Settled::above ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
    case Fill::nan:
      // NaN ranks above everything, so it is on the open side only where settled items rank below.
      return side == Settled::below && i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
  }
  return 0.0F;
}

/// A row of `n` values on which the selection of `k` is driven to its limit of rounds.
std::vector<float> killer_row(std::size_t n, std::size_t k, Settled side, Fill fill) {
  Adversary adversary(n, side);
  std::vector<std::size_t> items(n);
  for (std::size_t i = 0; i < n; ++i) {
    items[i] = i;
  }
  (void)detail::narrow(std::span<std::size_t>(items), k - 1, detail::round_limit(n),
                       [&](std::size_t a, std::size_t b) { return adversary.before(a, b); });
  constexpr float kFar = 1 << 22;  // beyond every open value, and exact with any settled count added
  std::mt19937 random(static_cast<unsigned>(n * 31 + k));
  std::vector<float> row(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::optional<std::size_t> order = adversary.order(i);
    const float step = static_cast<float>(order.value_or(0));
    row[i] = !order ? open_value(fill, side, i, random) : side == Settled::above ? kFar - step : step - kFar;
  }
  return row;
}

/// The same selection with unlimited rounds: what an implementation without the fallback gives.
std::vector<std::int32_t> without_limit(const std::vector<float>& row, std::size_t k) {
  std::vector<std::int32_t> items(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    items[i] = static_cast<std::int32_t>(i);
  }
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return (std::isnan(row[a]) && !std::isnan(row[b])) || row[a] > row[b];
  };
  (void)detail::quickselect(std::span<std::int32_t>(items), k, std::numeric_limits<int>::max(), before);
  items.resize(k);
  std::sort(items.begin(), items.end());
  return items;
}

/// Counts that a sweep of rows leaves behind.
struct Sweep {
  int reached = 0;    ///< rows on which the limit was used up
  int differing = 0;  ///< of those, rows whose set is another one without the limit
};

void check(std::size_t n, std::size_t k, Settled side, Fill fill, Sweep& sweep) {
  const std::vector<float> row = killer_row(n, k, side, fill);
  const detail::TracedSet found = detail::traced_topk_set(row, static_cast<std::int64_t>(k));
  ASSERT_EQ(found.indices, library_topk_set(row, k)) << "n " << n << ", k " << k << ", fill " << static_cast<int>(fill);
  EXPECT_EQ(found.indices, topk_set(row, static_cast<std::int64_t>(k)));
  if (found.path == SelectionPath::depth_limit) {
    ++sweep.reached;
    sweep.differing += static_cast<int>(found.indices != without_limit(row, k));
  }
}

constexpr std::array kFills{Fill::equal, Fill::three_classes, Fill::ascending, Fill::random, Fill::infinite, Fill::nan};
constexpr std::array kSides{Settled::above, Settled::below};

TEST(TopkDepthLimit, RoundsAreTwiceTheBinaryLogarithm) {
  EXPECT_EQ(detail::round_limit(1), 0);
  EXPECT_EQ(detail::round_limit(2), 2);
  EXPECT_EQ(detail::round_limit(20), 8);
  EXPECT_EQ(detail::round_limit(63), 10);
  EXPECT_EQ(detail::round_limit(64), 12);
  EXPECT_EQ(detail::round_limit(65536), 32);
}

TEST(TopkDepthLimit, SmallRowsEveryKEqualTheLibrary) {
  if (!kLibstdcxx) {
    GTEST_SKIP() << "the oracle is libstdc++'s nth_element, and this is another standard library";
  }
  for (std::size_t n = 20; n <= 72; ++n) {
    Sweep sweep;
    for (std::size_t k = n / 64 + 1; k <= n; ++k) {
      for (const Settled side : kSides) {
        for (const Fill fill : kFills) {
          check(n, k, side, fill, sweep);
        }
      }
    }
    EXPECT_GT(sweep.reached, 0) << "n " << n;
  }
}

class TopkDepthLimitLargeRows : public testing::TestWithParam<std::size_t> {};

TEST_P(TopkDepthLimitLargeRows, EqualTheLibrary) {
  if (!kLibstdcxx) {
    GTEST_SKIP() << "the oracle is libstdc++'s nth_element, and this is another standard library";
  }
  const std::size_t n = GetParam();
  // Settled items take fewer than 2 places a round, so these k stay among the open ones on either side.
  const std::size_t margin = 2 * static_cast<std::size_t>(detail::round_limit(n)) + 2;
  Sweep sweep;
  int rows = 0;
  for (const std::size_t k : {std::max(n / 64 + 1, margin), n / 8, n / 3, n / 2, n - n / 4, n - margin}) {
    for (const Settled side : kSides) {
      for (const Fill fill : kFills) {
        check(n, k, side, fill, sweep);
        ++rows;
      }
    }
  }
  EXPECT_EQ(sweep.reached, rows) << "rows that did not reach the limit";
  EXPECT_GT(sweep.differing, rows / 4) << "rows whose set shows the fallback";
}

INSTANTIATE_TEST_SUITE_P(Sizes, TopkDepthLimitLargeRows,
                         testing::Values(512, 1000, 1024, 2048, 3001, 4096, 16384, 40000, 65535, 65536),
                         [](const auto& size) { return "n" + std::to_string(size.param); });

}  // namespace
}  // namespace attndiff::reference
