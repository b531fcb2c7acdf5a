#include "reference/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "reference/contract/error.h"

namespace attndiff::reference {
namespace {

struct Problem {
  std::vector<float> x;       ///< [tokens, x_stride]
  std::vector<double> dense;  ///< the whole weight, [weight_rows, depth]
  Weight weight;
  std::int64_t tokens = 0;
  std::int64_t depth = 0;
  std::int64_t x_stride = 0;
};

Problem random_problem(DType dtype, std::int64_t tokens, std::int64_t depth, std::int64_t weight_rows,
                       std::int64_t x_padding = 0) {
  std::mt19937 engine(static_cast<unsigned>(tokens * 1009 + depth * 31 + weight_rows));
  std::normal_distribution<float> normal;
  Problem p;
  p.tokens = tokens;
  p.depth = depth;
  p.x_stride = depth + x_padding;
  p.x.resize(static_cast<std::size_t>(tokens * p.x_stride));
  for (float& v : p.x) {
    v = round_bf16(normal(engine));
  }
  p.weight.values = Tensor(dtype, {weight_rows, depth});
  if (dtype == DType::e4m3) {
    p.weight.scales = Tensor(DType::u8, {(weight_rows + 31) / 32, (depth + 31) / 32});
    for (std::uint8_t& scale : p.weight.scales.as<std::uint8_t>()) {
      scale = static_cast<std::uint8_t>(120 + engine() % 12);
    }
  }
  for (std::int64_t i = 0; i < weight_rows * depth; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float v = normal(engine);
    if (dtype == DType::f32) {
      p.weight.values.as<float>()[at] = v;
      p.dense.push_back(static_cast<double>(v));
    } else if (dtype == DType::bf16) {
      p.weight.values.as<Bf16>()[at] = to_bf16(v);
      p.dense.push_back(static_cast<double>(round_bf16(v)));
    } else {
      const auto code = static_cast<unsigned>((engine() % 0x7fU) | ((engine() % 2) << 7U));  // any finite code
      p.weight.values.raw()[at] = static_cast<std::byte>(code);
      const int exponent = static_cast<int>((code >> 3U) & 0xfU);
      const int mantissa = static_cast<int>(code & 7U);
      const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
      const std::int64_t block = i / depth / 32 * ((depth + 31) / 32) + i % depth / 32;
      const int scale = p.weight.scales.as<std::uint8_t>()[static_cast<std::size_t>(block)];
      p.dense.push_back(std::ldexp((code & 0x80U) != 0 ? -magnitude : magnitude, scale - 127));
    }
  }
  return p;
}

std::vector<float> run(int threads, const Problem& p, std::int64_t row_begin, std::int64_t rows,
                       std::int64_t y_stride) {
  ThreadPool pool(threads);
  std::vector<float> y(static_cast<std::size_t>((p.tokens - 1) * y_stride + rows), -7.0F);
  product(pool, {.x = p.x,
                 .x_stride = p.x_stride,
                 .tokens = p.tokens,
                 .depth = p.depth,
                 .weight = p.weight,
                 .row_begin = row_begin,
                 .rows = rows,
                 .y = y,
                 .y_stride = y_stride});
  return y;
}

/// Every element against a sum in double; float32 summation in any order errs by at most depth * 2^-24 * sum |w x|.
void expect_close(const Problem& p, const std::vector<float>& y, std::int64_t row_begin, std::int64_t rows,
                  std::int64_t y_stride) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    for (std::int64_t o = 0; o < rows; ++o) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < p.depth; ++k) {
        const double term = static_cast<double>(p.x[static_cast<std::size_t>(t * p.x_stride + k)]) *
                            p.dense[static_cast<std::size_t>((row_begin + o) * p.depth + k)];
        sum += term;
        magnitude += std::fabs(term);
      }
      const double bound = static_cast<double>(p.depth + 1) * 0x1p-24 * magnitude;
      ASSERT_NEAR(y[static_cast<std::size_t>(t * y_stride + o)], sum, bound) << "token " << t << ", row " << o;
    }
  }
}

class ProductOf : public testing::TestWithParam<DType> {};

TEST_P(ProductOf, EqualsTheSumInDouble) {
  for (const std::int64_t tokens : {1, 2, 5}) {
    for (const std::int64_t depth : {1, 33, 100}) {
      for (const std::int64_t rows : {1, 7, 64, 65, 130}) {
        const Problem p = random_problem(GetParam(), tokens, depth, rows);
        expect_close(p, run(1, p, 0, rows, rows), 0, rows, rows);
      }
    }
  }
}

TEST_P(ProductOf, TakesABlockOfRowsAndWritesWithAStride) {
  for (const std::int64_t tokens : {1, 3}) {
    const Problem p = random_problem(GetParam(), tokens, 40, 100, 9);
    const auto y = run(1, p, 31, 66, 70);
    expect_close(p, y, 31, 66, 70);
    for (std::int64_t t = 0; t + 1 < tokens; ++t) {
      for (std::int64_t gap = 66; gap < 70; ++gap) {
        EXPECT_EQ(y[static_cast<std::size_t>(t * 70 + gap)], -7.0F) << "an element between the rows was written";
      }
    }
  }
}

TEST_P(ProductOf, IsTheSameBitsForEveryThreadCount) {
  for (const std::int64_t tokens : {1, 6}) {
    const Problem p = random_problem(GetParam(), tokens, 321, 333);
    const auto one = run(1, p, 0, 333, 333);
    for (const int threads : {2, 3}) {
      const auto many = run(threads, p, 0, 333, 333);
      EXPECT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0) << threads << " threads";
    }
  }
}

TEST_P(ProductOf, WeightRowsAreExact) {
  const Problem p = random_problem(GetParam(), 1, 70, 100);
  std::vector<float> rows(static_cast<std::size_t>(3 * 70));
  weight_rows(p.weight, 63, 3, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(static_cast<double>(rows[i]), p.dense[std::size_t{63} * 70 + i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, ProductOf, testing::Values(DType::f32, DType::bf16, DType::e4m3),
                         [](const auto& dtype) { return std::string(name_of(dtype.param)); });

TEST(Product, DoesNotRoundItsResult) {
  Problem p = random_problem(DType::f32, 1, 2, 1);
  p.x = {1.0F, 1.0F};
  p.weight.values.as<float>()[0] = 1.0F;
  p.weight.values.as<float>()[1] = 0x1p-20F;
  EXPECT_EQ(run(1, p, 0, 1, 1)[0], 1.0F + 0x1p-20F);
}

TEST(Product, ANanStaysInItsTokenAndRow) {
  Problem p = random_problem(DType::f32, 2, 8, 3);
  p.x[8] = std::nanf("");                          // token 1
  p.weight.values.as<float>()[0] = std::nanf("");  // row 0
  const auto y = run(1, p, 0, 3, 3);
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(std::isnan(y[i]), i / 3 == 1 || i % 3 == 0) << i;
  }
}

TEST(Product, ReportsABodysErrorAboutTheWeightsType) {
  Problem p = random_problem(DType::f32, 1, 4, 2);
  p.weight.values = Tensor(DType::i32, {2, 4});
  EXPECT_THROW((void)run(2, p, 0, 2, 2), Error);
}

}  // namespace
}  // namespace attndiff::reference
