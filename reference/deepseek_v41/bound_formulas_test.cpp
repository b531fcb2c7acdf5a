#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/contract/bfloat16.h"
#include "reference/deepseek_v41/bounds_test_support.h"

namespace attndiff::deepseek_v41 {
namespace {

// Each slack against its formula in docs/verdicts.md, in double and by plain loops.

constexpr double kU = 0x1p-24;

std::vector<double> doubles(const Tensor& t) {
  const Tensor floats = to_f32(t);
  return {floats.as<float>().begin(), floats.as<float>().end()};
}

std::vector<double> row_of(const std::vector<double>& all, std::size_t row, std::size_t width) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(width)};
}

double norm(const std::vector<double>& v) {
  double squares = 0;
  for (const double x : v) {
    squares += x * x;
  }
  return std::sqrt(squares);
}

/// S(K, w, x).
double sum_slack(const std::vector<double>& w, const std::vector<double>& x) {
  return 10 * std::sqrt(static_cast<double>(w.size())) * kU * norm(w) * norm(x);
}

class BoundFormulas : public testing::Test {
 protected:
  BoundFormulas() : bounds_(source_role(2), 2) {}

  std::vector<double> slack(StageId stage) { return doubles(bounds_.of(stage)->values); }
  std::vector<double> stage(StageId id) { return doubles(bounds_.seen().stages.at(id)); }
  std::vector<double> weight(const char* name) { return doubles(bounds_.model().weights[0].at(name).values); }
  [[nodiscard]] const ModelConfig& config() const { return bounds_.model().config; }

  static void expect_near(double found, double due, const char* what, std::size_t i) {
    EXPECT_NEAR(found, due, 2e-5 * due) << what << ", element " << i;
  }

  LayerBounds bounds_;
};

TEST_F(BoundFormulas, OfAProduct) {
  const auto found = slack(kOut);
  const auto og = stage(kOg);
  const auto w = weight("wo_b");
  const auto dim = static_cast<std::size_t>(config().dim);
  const std::size_t depth = w.size() / dim;
  ASSERT_EQ(found.size(), static_cast<std::size_t>(kTokens) * dim);
  for (std::size_t i = 0; i < found.size(); ++i) {
    expect_near(found[i], sum_slack(row_of(w, i % dim, depth), row_of(og, i / dim, depth)), "out", i);
  }
}

TEST_F(BoundFormulas, OfAQueryThatDoesNotTurn) {
  const auto found = slack(kQ);
  const auto qr = stage(kQr);
  const auto w = weight("wq_b");
  const auto width = static_cast<std::size_t>(config().head_dim);
  const auto outputs = static_cast<std::size_t>(config().n_heads) * width;
  const auto depth = static_cast<std::size_t>(config().q_rank);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i % width < width - static_cast<std::size_t>(config().rope_dim)) {
      expect_near(found[i], sum_slack(row_of(w, i % outputs, depth), row_of(qr, i / outputs, depth)), "q", i);
    }
  }
}

TEST_F(BoundFormulas, OfARotation) {
  const auto found = slack(kCompressPre);
  const auto latent = stage(kLatent);
  const auto width = static_cast<std::size_t>(config().head_dim);
  const std::size_t tail = width - static_cast<std::size_t>(config().rope_dim);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t even = i - i % 2;
    const double turned = (3 * kU + 0x1p-22) * (std::fabs(latent[even]) + std::fabs(latent[even + 1]));
    expect_near(found[i], i % width < tail ? 0 : turned, "compress_pre", i);
  }
}

/// rmsnorm of a product rounded to bf16.
TEST_F(BoundFormulas, OfANorm) {
  const auto found = slack(kQr);
  const auto qr = doubles(bounds_.seen().unrounded.at(kQr));
  const auto x = doubles(bounds_.x());
  const auto w = weight("wq_a");
  const auto gain = weight("q_norm");
  const auto dim = static_cast<std::size_t>(config().dim);
  const std::size_t rank = gain.size();
  double moved_entries = 0;
  for (std::size_t t = 0; t < static_cast<std::size_t>(kTokens); ++t) {
    std::vector<double> row(rank);
    std::vector<double> moves(rank);
    double square_sum = 0;
    double moved = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const auto wd = row_of(w, d, dim);
      const auto xt = row_of(x, t, dim);
      double product = 0;
      for (std::size_t k = 0; k < dim; ++k) {
        product += wd[k] * xt[k];
      }
      const double e = sum_slack(wd, xt);
      const auto rounded = [](double v) { return static_cast<double>(round_bf16(static_cast<float>(v))); };
      row[d] = rounded(product);
      moves[d] = std::max(std::fabs(rounded(product + e) - row[d]), std::fabs(rounded(product - e) - row[d]));
      moved_entries += moves[d] > 0 ? 1 : 0;
      square_sum += row[d] * row[d];
      moved += row[d] * moves[d] * row[d] * moves[d];
    }
    const double rms = std::sqrt(square_sum / static_cast<double>(rank) + config().eps);
    for (std::size_t d = 0; d < rank; ++d) {
      const double due = std::fabs(gain[d]) / rms * (moves[d] + std::fabs(row[d]) * 8 * std::sqrt(moved) / square_sum) +
                         (6 + 5 * std::sqrt(static_cast<double>(rank))) * kU * std::fabs(qr[t * rank + d]);
      expect_near(found[t * rank + d], due, "qr", t * rank + d);
    }
  }
  EXPECT_GT(moved_entries, 0) << "no entry lies beside a rounding boundary";
}

/// A query's attended rows with their softmax weights, sink included in the denominator.
struct Attended {
  std::vector<std::vector<double>> rows;
  std::vector<double> weights;
  double relative = 0;  ///< r + t of the formulas
  double longest = 0;   ///< largest 2-norm of a row
};

class AttentionFormulas : public BoundFormulas {
 protected:
  Attended attended(std::size_t token, std::size_t head) {
    const auto width = static_cast<std::size_t>(config().head_dim);
    const auto heads = static_cast<std::size_t>(config().n_heads);
    const auto idx = stage(kIdx);
    const auto all = stage(kRows);
    const std::size_t columns = idx.size() / static_cast<std::size_t>(kTokens);
    Attended a;
    for (const double position : row_of(idx, token, columns)) {
      if (position >= 0) {
        a.rows.push_back(row_of(all, static_cast<std::size_t>(position), width));
      }
    }
    const auto q = row_of(stage(kQ), token * heads + head, width);
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    const double sink = weight("sink")[head];
    double denominator = std::exp(sink);
    for (const auto& row : a.rows) {
      double dot = 0;
      for (std::size_t d = 0; d < width; ++d) {
        dot += q[d] * row[d];
      }
      a.weights.push_back(std::exp(dot * scale));
      denominator += a.weights.back();
      a.longest = std::max(a.longest, norm(row));
    }
    for (double& p : a.weights) {
      p /= denominator;
    }
    const double s = norm(q) * a.longest * scale;
    const double r = 2 * (10 * std::sqrt(static_cast<double>(width)) * kU * s + (4 * s + std::fabs(sink) + 8) * kU);
    a.relative = r + 10 * std::sqrt(static_cast<double>(a.rows.size() + 1)) * kU;
    return a;
  }
};

TEST_F(AttentionFormulas, OfLse) {
  const auto found = slack(kLse);
  const auto lse = stage(kLse);
  const auto heads = static_cast<std::size_t>(config().n_heads);
  for (std::size_t i = 0; i < found.size(); ++i) {
    expect_near(found[i], attended(i / heads, i % heads).relative + 4 * kU * std::fabs(lse[i]), "lse", i);
  }
}

TEST_F(AttentionFormulas, OfAttention) {
  const auto found = slack(kO);
  const auto o = doubles(bounds_.seen().unrounded.at(kO));
  const auto width = static_cast<std::size_t>(config().head_dim);
  const auto heads = static_cast<std::size_t>(config().n_heads);
  for (std::size_t row = 0; row < found.size() / width; ++row) {
    const Attended a = attended(row / heads, row % heads);
    for (std::size_t d = 0; d < width; ++d) {
      double moved = 0;
      double concentration = 0;
      for (std::size_t j = 0; j < a.rows.size(); ++j) {
        moved += std::pow(a.weights[j] * a.rows[j][d], 2);
        concentration += std::pow(a.weights[j], 2);
      }
      const double size = std::fabs(o[row * width + d]);
      const double due = a.relative * (std::sqrt(moved) + std::sqrt(concentration) * size) + 4 * kU * size +
                         0x1p-149 * static_cast<double>(a.rows.size() + 1) * (1 + a.longest);
      expect_near(found[row * width + d], due, "o", row * width + d);
    }
  }
}

/// Both rows lie on the fp4 grid, so their dots are exact, and what errs is the sum over heads.
TEST_F(BoundFormulas, OfIndexScores) {
  const auto found = slack(kIndexScore);
  const auto q = stage(kIndexQ);
  const auto w = stage(kIndexW);
  const auto keys = stage(kIndexK);
  const auto width = static_cast<std::size_t>(config().index_head_dim);
  const auto heads = static_cast<std::size_t>(config().index_heads);
  const std::size_t length = keys.size() / width;
  ASSERT_EQ(found.size(), static_cast<std::size_t>(kTokens) * length);
  for (std::size_t i = 0; i < found.size(); ++i) {
    double weighted = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = i / length * heads + h;
      weighted += std::fabs(w[at]) * norm(row_of(q, at, width));
    }
    const double key = norm(row_of(keys, i % length, width));
    expect_near(found[i], 10 * std::sqrt(static_cast<double>(heads)) * kU * weighted * key, "index_score", i);
  }
}

}  // namespace
}  // namespace attndiff::deepseek_v41
