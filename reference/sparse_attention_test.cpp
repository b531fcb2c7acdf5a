#include "reference/sparse_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace attndiff::reference {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Problem {
  std::size_t heads = 0;
  std::size_t width = 0;
  std::vector<float> q;
  std::vector<Bf16> window;
  std::vector<Bf16> compressed;
  std::vector<std::int32_t> idx;
  std::vector<float> sink;
  float scale = 1;
};

struct Attended {
  std::vector<float> o;
  std::vector<float> lse;
};

Attended attend(const Problem& p) {
  Attended a{.o = std::vector<float>(p.q.size(), 99.0F), .lse = std::vector<float>(p.heads, 99.0F)};
  sparse_attention({.q = p.q,
                    .rows = {.window = p.window, .compressed = p.compressed},
                    .idx = p.idx,
                    .sink = p.sink,
                    .scale = p.scale,
                    .o = a.o,
                    .lse = a.lse});
  return a;
}

std::vector<Bf16> rows_of(const std::vector<float>& values) {
  std::vector<Bf16> rows(values.size());
  std::transform(values.begin(), values.end(), rows.begin(), [](float v) { return to_bf16(v); });
  return rows;
}

Problem random_problem(std::size_t heads, std::size_t width, std::size_t window, std::size_t compressed) {
  std::mt19937 engine(static_cast<unsigned>(heads * 100 + width));
  std::normal_distribution<float> normal;
  const auto values = [&](std::size_t n) {
    std::vector<float> v(n);
    std::generate(v.begin(), v.end(), [&] { return round_bf16(normal(engine)); });
    return v;
  };
  Problem p;
  p.heads = heads;
  p.width = width;
  p.q = values(heads * width);
  p.window = rows_of(values(window * width));
  p.compressed = rows_of(values(compressed * width));
  p.sink = values(heads);
  p.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));
  return p;
}

/// Softmax with a sink logit in double, straight from its definition.
void expect_definition(const Problem& p) {
  const Attended found = attend(p);
  std::vector<Bf16> rows = p.window;
  rows.insert(rows.end(), p.compressed.begin(), p.compressed.end());
  const auto row = [&](std::int32_t i, std::size_t d) {
    const std::size_t at = static_cast<std::size_t>(i) * p.width + d;
    return at < rows.size() ? static_cast<double>(to_float(rows[at])) : 0.0;
  };
  for (std::size_t h = 0; h < p.heads; ++h) {
    double den = std::exp(static_cast<double>(p.sink[h]));
    std::vector<double> o(p.width, 0.0);
    for (const std::int32_t i : p.idx) {
      if (i < 0) {
        continue;
      }
      double s = 0;
      for (std::size_t d = 0; d < p.width; ++d) {
        s += static_cast<double>(p.q[h * p.width + d]) * row(i, d);
      }
      const double weight = std::exp(s * static_cast<double>(p.scale));
      den += weight;
      for (std::size_t d = 0; d < p.width; ++d) {
        o[d] += weight * row(i, d);
      }
    }
    EXPECT_NEAR(found.lse[h], std::log(den), 1e-5) << "head " << h;
    for (std::size_t d = 0; d < p.width; ++d) {
      EXPECT_NEAR(found.o[h * p.width + d], o[d] / den, 1e-5) << "head " << h << ", dimension " << d;
    }
  }
}

TEST(SparseAttention, EqualsItsDefinitionInDouble) {
  Problem p = random_problem(6, 96, 8, 5);
  p.idx = {3, 4, 5, 6, 7, 0, 1, 2, 8, 9, 12};
  expect_definition(p);
  p = random_problem(1, 33, 3, 0);
  p.idx = {1};
  expect_definition(p);
}

TEST(SparseAttention, AbsentEntriesMayStandAnywhere) {
  Problem p = random_problem(2, 32, 4, 3);
  p.idx = {-1, -1, 2, -1, 0, 5, -1};
  expect_definition(p);
  const Attended with = attend(p);
  p.idx = {2, 0, 5};
  const Attended without = attend(p);
  EXPECT_EQ(with.o, without.o);
  EXPECT_EQ(with.lse, without.lse);
}

TEST(SparseAttention, ARowNamedTwiceCountsTwice) {
  Problem p = random_problem(2, 32, 4, 0);
  p.idx = {1, 1, 3};
  expect_definition(p);
}

TEST(SparseAttention, CompressedRowsNeverWrittenAreZero) {
  Problem p = random_problem(2, 32, 4, 1);
  p.idx = {0, 4, 6};  // 4 is the written compressed row, 6 lies behind it
  expect_definition(p);
}

TEST(SparseAttention, WithNothingPresentOnlyTheSinkIsLeft) {
  Problem p = random_problem(3, 32, 2, 0);
  for (const std::vector<std::int32_t>& idx : {std::vector<std::int32_t>{-1, -1}, std::vector<std::int32_t>{}}) {
    p.idx = idx;
    const Attended found = attend(p);
    EXPECT_THAT(found.o, Each(0.0F));
    EXPECT_EQ(found.lse, p.sink);
  }
}

/// One head of width 1 whose rows are the given values, the query 1 and the scale 1: scores are the rows themselves.
Problem of_scores(const std::vector<float>& scores, float sink) {
  Problem p;
  p.heads = 1;
  p.width = 1;
  p.q = {1};
  p.window = rows_of(scores);
  p.sink = {sink};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    p.idx.push_back(static_cast<std::int32_t>(i));
  }
  return p;
}

TEST(SparseAttention, TheSinkTakesItsShareOfTheDenominator) {
  const Attended found = attend(of_scores({2}, 2.0F));  // e^2 / (e^2 + e^2) * 2
  EXPECT_EQ(found.o[0], 1.0F);
  EXPECT_NEAR(found.lse[0], 2 + std::log(2.0), 1e-6);
}

TEST(SparseAttention, TheSinkEntersTheMaximum) {
  // Without it the maximum is 0, and exp(200) overflows.
  const Attended found = attend(of_scores({0}, 200.0F));
  EXPECT_EQ(found.lse[0], 200.0F);
  EXPECT_EQ(found.o[0], 0.0F);
}

TEST(SparseAttention, HugeScoresDoNotOverflow) {
  const Attended found = attend(of_scores({65536.0F, 65536.0F, -65536.0F}, -65536.0F));
  EXPECT_EQ(found.o[0], 65536.0F);
  EXPECT_EQ(found.lse[0], 65536.0F + static_cast<float>(std::log(2.0)));
}

TEST(SparseAttention, ASinkOfMinusInfinityIsNoSink) {
  const Attended found = attend(of_scores({3}, -kInf));
  EXPECT_EQ(found.o[0], 3.0F);
  EXPECT_EQ(found.lse[0], 3.0F);
}

TEST(SparseAttention, ScalesTheScoresOnly) {
  Problem p = of_scores({4, 0}, -kInf);
  p.scale = 0.25F;  // scores 1 and 0
  const double weight = std::exp(1.0) / (std::exp(1.0) + 1);
  EXPECT_NEAR(attend(p).o[0], 4 * weight, 1e-5);
}

TEST(SparseAttention, NanFlowsFromWhatIsPresent) {
  Problem p = random_problem(2, 32, 3, 0);
  p.idx = {0, 1};
  p.window[64] = Bf16{0x7fc0};
  EXPECT_THAT(attend(p).o, Each(testing::Not(testing::IsNan()))) << "an absent row was read";
  p.idx = {0, 1, 2};
  EXPECT_THAT(attend(p).o, Each(testing::IsNan()));
  EXPECT_THAT(attend(p).lse, Each(testing::IsNan()));
}

TEST(SparseAttention, ANanOfOneHeadStaysInIt) {
  Problem p = random_problem(2, 32, 3, 0);
  p.idx = {0, 1, 2};
  p.sink[1] = std::nanf("");
  const Attended found = attend(p);
  for (std::size_t i = 0; i < found.o.size(); ++i) {
    EXPECT_EQ(std::isnan(found.o[i]), i >= 32) << i;
  }
}

TEST(AttendedRows, CountThroughBothParts) {
  const auto window = rows_of({1, 2, 3, 4});
  const auto compressed = rows_of({5, 6});
  const AttendedRows rows{.window = window, .compressed = compressed};
  std::vector<float> out(2);
  rows.copy_row(1, out);
  EXPECT_THAT(out, ElementsAre(3, 4));
  rows.copy_row(2, out);
  EXPECT_THAT(out, ElementsAre(5, 6));
  rows.copy_row(3, out);
  EXPECT_THAT(out, ElementsAre(0, 0));
}

}  // namespace
}  // namespace attndiff::reference
