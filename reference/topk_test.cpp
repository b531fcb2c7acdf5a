#include "reference/topk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "reference/contract/error.h"
#include "reference/topk_detail.h"
#include "reference/topk_test_support.h"

namespace attndiff::reference {
namespace {

using detail::SelectionPath;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(TopkSet, PicksTheLargestAscendingByIndex) {
  EXPECT_THAT(topk_set(std::vector<float>{1, 5, 3, 4, 2}, 2), ElementsAre(1, 3));
  EXPECT_THAT(topk_set(std::vector<float>{1, 5, 3, 4, 2}, 5), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(topk_set(std::vector<float>{-kInf, -kInf, 7}, 1), ElementsAre(2));
}

TEST(TopkSet, ZeroPicksGiveTheEmptySet) {
  EXPECT_THAT(topk_set(std::vector<float>{1, 2}, 0), IsEmpty());
  EXPECT_THAT(topk_set(std::vector<float>{}, 0), IsEmpty());
}

TEST(TopkSet, RanksNanAboveInfinityWhateverItsSignAndPayload) {
  const auto negative_nan = std::bit_cast<float>(0xffc12345U);
  const auto signalling_nan = std::bit_cast<float>(0x7f800001U);
  EXPECT_THAT(topk_set(std::vector<float>{kInf, negative_nan, 3, signalling_nan}, 2), ElementsAre(1, 3));
  EXPECT_THAT(topk_set(std::vector<float>{kNan, kInf, -kInf, kInf}, 3), ElementsAre(0, 1, 3));
}

TEST(TopkSet, DoesNotTellSignedZerosApart) {
  const std::vector<float> positive(9, 0.0F);
  std::vector<float> mixed = positive;
  mixed[2] = mixed[5] = mixed[8] = -0.0F;
  for (std::int64_t k = 0; k <= 9; ++k) {
    EXPECT_EQ(topk_set(mixed, k), topk_set(positive, k)) << "k " << k;
  }
}

TEST(TopkSet, RefusesKOutsideTheRow) {
  const std::vector<float> row{1, 2, 3};
  for (const std::int64_t k : std::array<std::int64_t, 3>{-1, 4, std::numeric_limits<std::int64_t>::min()}) {
    try {
      (void)topk_set(row, k);
      ADD_FAILURE() << "k " << k << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::refused);
      EXPECT_EQ(error.details().expected, "0 <= k <= 3");
      EXPECT_EQ(error.details().found, std::to_string(k));
    }
  }
}

TEST(TopkSet, SwitchesToPartialSortAtASixtyFourthOfTheRow) {
  const std::vector<float> row(640, 1.0F);
  EXPECT_EQ(detail::traced_topk_set(row, 10).path, SelectionPath::partial_sort);
  EXPECT_EQ(detail::traced_topk_set(row, 11).path, SelectionPath::nth_element);
  EXPECT_EQ(detail::traced_topk_set(row, 0).path, SelectionPath::empty);
}

TEST(TopkSet, EqualsTheLibraryOnEveryPatternOfThreeValues) {
  if (!kLibstdcxx) {
    GTEST_SKIP() << "the oracle is libstdc++'s nth_element, and this is another standard library";
  }
  constexpr std::array<float, 3> kAlphabet{0, 1, 2};
  int compared = 0;
  for (std::size_t n = 1, patterns = 3; n <= 7; ++n, patterns *= 3) {
    std::vector<float> row(n);
    for (std::size_t pattern = 0; pattern < patterns; ++pattern) {
      for (std::size_t i = 0, digits = pattern; i < n; ++i, digits /= 3) {
        row[i] = kAlphabet[digits % 3];
      }
      for (std::size_t k = 1; k <= n; ++k, ++compared) {
        ASSERT_EQ(topk_set(row, static_cast<std::int64_t>(k)), library_topk_set(row, k)) << testing::PrintToString(row);
      }
    }
  }
  EXPECT_EQ(compared, 21324);  // sum over n of n * 3^n
}

/// Random rows of the kinds that scores come in, most of them with many equal values.
class RowMaker {
 public:
  explicit RowMaker(unsigned seed) : engine_(seed) {}

  std::size_t below(std::size_t end) { return engine_() % end; }

  std::vector<float> row(std::size_t n) {
    const int levels = kLevels.at(below(kLevels.size()));
    const int middle = levels / 2;
    const std::size_t special = below(4);
    std::vector<float> values(n);
    for (float& v : values) {
      v = static_cast<float>(below(levels)) - static_cast<float>(middle);
      if (special != 0 && below(6) == 0) {
        v = specials(special).at(below(3));
      }
    }
    if (special == 1) {  // a causal mask's tail
      std::fill(values.begin() + static_cast<std::ptrdiff_t>(below(n + 1)), values.end(), -kInf);
    }
    return values;
  }

 private:
  static constexpr std::array<int, 6> kLevels{1, 2, 3, 10, 100, 1 << 20};

  static std::array<float, 3> specials(std::size_t kind) {
    constexpr std::array<std::array<float, 3>, 3> kValues{
        {{-kInf, -kInf, -kInf}, {kInf, -kInf, -0.0F}, {kNan, -kInf, kInf}}};
    return kValues.at(kind - 1);
  }

  std::mt19937 engine_;
};

TEST(TopkSet, EqualsTheLibraryOnAHundredThousandRandomRows) {
  if (!kLibstdcxx) {
    GTEST_SKIP() << "the oracle is libstdc++'s nth_element and partial_sort, and this is another standard library";
  }
  RowMaker make(20240917);
  std::map<SelectionPath, int> seen;
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t n = i % 500 == 0 ? 1 + make.below(4096) : 1 + make.below(300);
    const std::size_t k = i % 3 == 0 ? 1 + make.below(n / 64 + 1) : 1 + make.below(n);
    const std::vector<float> row = make.row(n);
    const detail::TracedSet found = detail::traced_topk_set(row, static_cast<std::int64_t>(k));
    ASSERT_EQ(found.indices, library_topk_set(row, k)) << "row " << i << ", n " << n << ", k " << k;
    ++seen[found.path];
  }
  EXPECT_GT(seen[SelectionPath::partial_sort], 10'000);
  EXPECT_GT(seen[SelectionPath::nth_element], 50'000);
}

TEST(TopkSet, DiffersFromTheLowestIndexRule) {
  // Equal values do not leave in index order, so "lowest index first" is a different selection.
  const std::vector<float> row(40, 1.0F);
  std::vector<std::int32_t> lowest(10);
  std::iota(lowest.begin(), lowest.end(), 0);
  EXPECT_NE(topk_set(row, 10), lowest);
}

}  // namespace
}  // namespace attndiff::reference
