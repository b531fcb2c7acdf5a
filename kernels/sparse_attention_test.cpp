#include "kernels/sparse_attention.h"

#include <cmath>
#include <limits>
#include <optional>

#include "kernels/gpu_test_support.h"
#include "kernels/launch.h"

namespace attndiff::kernels {
namespace {

class SparseAttention : public GpuTest {};

struct Case {
  std::int64_t tokens, heads, head_dim, columns, window_count, compressed_count;
  double absent = 0.2;  ///< share of -1 entries
};

struct Problem {
  Case c;
  std::vector<Bf16> q, window, compressed;
  std::vector<std::int32_t> idx;
  std::vector<float> sink;
};

Problem make(const Case& c, unsigned seed) {
  Problem p{.c = c, .q = {}, .window = {}, .compressed = {}, .idx = {}, .sink = {}};
  p.q = random_bf16(static_cast<std::size_t>(c.tokens * c.heads * c.head_dim), seed, 2.0F);
  p.window = random_bf16(static_cast<std::size_t>(c.window_count * c.head_dim), seed + 1);
  p.compressed = random_bf16(static_cast<std::size_t>(c.compressed_count * c.head_dim), seed + 2);
  p.sink = random_floats(static_cast<std::size_t>(c.heads), seed + 3);
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> row(0,
                                                  static_cast<std::int32_t>(c.window_count + c.compressed_count) - 1);
  std::bernoulli_distribution absent(c.absent);
  for (std::int64_t i = 0; i < c.tokens * c.columns; ++i) {
    p.idx.push_back(absent(generator) ? -1 : row(generator));
  }
  return p;
}

struct Result {
  std::vector<Bf16> o;
  std::vector<float> lse;
};

Result run(const Problem& p, AttentionForm form) {
  const OnDevice<Bf16> q(p.q);
  const OnDevice<Bf16> window(p.window);
  const OnDevice<Bf16> compressed(p.compressed);
  const OnDevice<std::int32_t> idx(p.idx);
  const OnDevice<float> sink(p.sink);
  const OnDevice<Bf16> o(p.q.size(), kUnwritten);
  const OnDevice<float> lse(static_cast<std::size_t>(p.c.tokens * p.c.heads), NAN);
  prepare_sparse_attention(p.c.head_dim, p.c.columns);
  launch_sparse_attention({.q = q.get(),
                           .window_rows = window.get(),
                           .compressed_rows = compressed.get(),
                           .idx = idx.get(),
                           .sink = sink.get(),
                           .o = o.get(),
                           .lse = lse.get(),
                           .tokens = p.c.tokens,
                           .heads = p.c.heads,
                           .head_dim = p.c.head_dim,
                           .columns = p.c.columns,
                           .window_count = p.c.window_count,
                           .scale = static_cast<float>(std::pow(static_cast<double>(p.c.head_dim), -0.5))},
                          form, nullptr);
  return {o.host(), lse.host()};
}

/// One query and head in double.
struct Exact {
  std::vector<double> o;
  double lse = 0;
};

Exact exact(const Problem& p, std::int64_t t, std::int64_t h) {
  const std::int64_t width = p.c.head_dim;
  const auto scale = static_cast<double>(static_cast<float>(std::pow(static_cast<double>(width), -0.5)));
  const auto row = [&](std::int32_t entry) {
    return entry < p.c.window_count ? p.window.data() + entry * width
                                    : p.compressed.data() + (entry - p.c.window_count) * width;
  };
  std::vector<double> s;
  double m = p.sink[static_cast<std::size_t>(h)];
  for (std::int64_t j = 0; j < p.c.columns; ++j) {
    const std::int32_t entry = p.idx[static_cast<std::size_t>(t * p.c.columns + j)];
    double dot = -std::numeric_limits<double>::infinity();
    if (entry >= 0) {
      dot = 0;
      for (std::int64_t d = 0; d < width; ++d) {
        dot += static_cast<double>(to_float(p.q[static_cast<std::size_t>((t * p.c.heads + h) * width + d)])) *
               to_float(row(entry)[d]);
      }
      dot *= scale;
    }
    s.push_back(dot);
    m = std::max(m, dot);
  }
  double den = std::exp(p.sink[static_cast<std::size_t>(h)] - m);
  Exact e{.o = std::vector<double>(static_cast<std::size_t>(width), 0.0)};
  for (std::int64_t j = 0; j < p.c.columns; ++j) {
    const double weight = std::exp(s[static_cast<std::size_t>(j)] - m);
    den += weight;
    const std::int32_t entry = p.idx[static_cast<std::size_t>(t * p.c.columns + j)];
    for (std::int64_t d = 0; entry >= 0 && d < width; ++d) {
      e.o[static_cast<std::size_t>(d)] += weight * to_float(row(entry)[d]);
    }
  }
  for (double& v : e.o) {
    v /= den;
  }
  e.lse = m + std::log(den);
  return e;
}

/// Errors allowed beyond the last rounding of `o`, and of `lse`: float32 scores whose tensor-core sums are cut, not
/// rounded, at each step.
struct Slack {
  double o = 5e-5;
  double lse = 1e-4;
};

void expect_exact(const Problem& p, const Result& got, const Slack& slack) {
  for (std::int64_t t = 0; t < p.c.tokens; ++t) {
    for (std::int64_t h = 0; h < p.c.heads; ++h) {
      const Exact want = exact(p, t, h);
      const auto head = static_cast<std::size_t>(t * p.c.heads + h);
      ASSERT_NEAR(got.lse[head], want.lse, slack.lse) << "query " << t << ", head " << h;
      const auto begin = got.o.begin() + static_cast<std::ptrdiff_t>(head) * p.c.head_dim;
      // Softmax weights rounded to bf16 would err by some 3e-4 at the released geometry and fail here.
      expect_close({begin, begin + p.c.head_dim}, want.o, 0.5, slack.o);
    }
  }
}

constexpr AttentionForm kForms[] = {AttentionForm::plain, AttentionForm::wide, AttentionForm::narrow};

void expect_exact_in_every_form(const Problem& p, const Slack& slack = {}) {
  std::optional<Result> tensor_cores;
  for (const AttentionForm form : kForms) {
    if (!attention_supports(form, p.c.head_dim)) {
      continue;
    }
    const Result got = run(p, form);
    expect_exact(p, got, slack);
    if (form == AttentionForm::plain) {
      continue;
    }
    if (tensor_cores) {
      EXPECT_EQ(got.o, tensor_cores->o) << "the bytes depend on how the work is cut";
      EXPECT_EQ(got.lse, tensor_cores->lse);
    }
    tensor_cores = got;
  }
}

TEST_F(SparseAttention, SmallAndOddShapes) {
  expect_exact_in_every_form(make({3, 4, 32, 14, 12, 9}, 1));
  expect_exact_in_every_form(make({2, 6, 96, 13, 8, 20}, 2));
  expect_exact_in_every_form(make({5, 8, 64, 48, 16, 60}, 3));
  expect_exact_in_every_form(make({1, 3, 64, 1, 4, 4, 0.0}, 4));
}

TEST_F(SparseAttention, ReleasedGeometry) {
  expect_exact_in_every_form(make({2, 64, 512, 640, 128, 600}, 5));
  expect_exact_in_every_form(make({1, 64, 512, 97, 128, 10, 0.7}, 6));
  expect_exact_in_every_form(make({1, 20, 512, 40, 30, 30}, 7));
}

TEST_F(SparseAttention, SharpSoftmaxMovesTheRunningMaximum) {
  Problem p = make({1, 16, 512, 160, 100, 100}, 8);
  for (Bf16& v : p.q) {
    v = to_bf16(to_float(v) * 8.0F);
  }
  expect_exact_in_every_form(p, {.o = 5e-4, .lse = 1e-3});
}

TEST_F(SparseAttention, AbsentLeadingTilesAndAbsentRows) {
  for (const std::int64_t width : {std::int64_t{64}, std::int64_t{512}}) {
    Problem p = make({2, 16, width, 100, 16, 50}, 9);
    std::fill_n(p.idx.begin(), 70, -1);               // the first query's two leading tiles
    std::fill(p.idx.begin() + 100, p.idx.end(), -1);  // the second attends nothing but the sink
    expect_exact_in_every_form(p);
  }
}

TEST_F(SparseAttention, AbsentEntriesReadNoMemory) {
  for (const std::int64_t width : {std::int64_t{96}, std::int64_t{64}, std::int64_t{512}}) {
    Problem p = make({1, 16, width, 90, 16, 50, 0.5}, 10);
    const auto poison = [&](std::vector<Bf16>& rows, std::int32_t first) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = first + static_cast<std::int32_t>(i / static_cast<std::size_t>(width));
        if (std::find(p.idx.begin(), p.idx.end(), row) == p.idx.end()) {
          rows[i] = kUnwritten;
        }
      }
    };
    std::fill(p.idx.begin() + 20, p.idx.begin() + 60, -1);
    poison(p.window, 0);
    poison(p.compressed, 16);
    expect_exact_in_every_form(p);
  }
}

TEST_F(SparseAttention, PaddingChangesNoBit) {
  for (const std::int64_t width : {std::int64_t{32}, std::int64_t{64}, std::int64_t{512}}) {
    const Problem plain = make({1, 16, width, 45, 16, 50}, 11);
    Problem padded = plain;
    padded.c.columns = 160;
    padded.idx.resize(160, -1);
    for (const AttentionForm form : kForms) {
      if (attention_supports(form, width)) {
        const Result a = run(plain, form);
        const Result b = run(padded, form);
        EXPECT_EQ(a.o, b.o);
        EXPECT_EQ(a.lse, b.lse);
      }
    }
  }
}

TEST_F(SparseAttention, RepeatsBitForBit) {
  const Problem p = make({3, 64, 512, 100, 64, 64}, 12);
  for (const AttentionForm form : kForms) {
    const Result first = run(p, form);
    for (int repeat = 1; repeat < 20; ++repeat) {
      const Result again = run(p, form);
      ASSERT_EQ(again.o, first.o);
      ASSERT_EQ(again.lse, first.lse);
    }
  }
}

TEST(SparseAttentionForms, ChosenByShape) {
  EXPECT_EQ(attention_form(2048, 64, 512), AttentionForm::wide);
  EXPECT_EQ(attention_form(1, 64, 512), AttentionForm::narrow);
  EXPECT_EQ(attention_form(2048, 48, 512), AttentionForm::narrow);
  EXPECT_EQ(attention_form(150, 8, 64), AttentionForm::narrow);
  EXPECT_EQ(attention_form(21, 6, 96), AttentionForm::plain);
}

TEST(SparseAttentionForms, ReleasedShapeFitsEveryTarget) {
  constexpr std::size_t kAmpere = 163 * 1024;  // most dynamic shared memory of a block on sm_80, the smallest target
  for (const AttentionForm form : kForms) {
    EXPECT_LE(attention_shared_bytes(form, 512, 640), kAmpere);
  }
}

}  // namespace
}  // namespace attndiff::kernels
