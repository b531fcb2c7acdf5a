// Each stage recomputed from the stages it comes from, in double and without the reference's own steps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reference/contract/bfloat16.h"
#include "reference/deepseek_v41/model_test_support.h"

namespace attndiff::deepseek_v41 {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const Tensor& t, std::size_t width) {
  const Tensor floats = to_f32(t);
  Rows rows;
  for (std::size_t begin = 0; begin < floats.as<float>().size(); begin += width) {
    const auto row = floats.as<float>().subspan(begin, width);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

double to_bf16_grid(double v) { return static_cast<double>(round_bf16(static_cast<float>(v))); }

/// bf16(x . W^T), the sum in double.
Rows linear(const Rows& x, const Rows& w) {
  Rows y;
  for (const auto& row : x) {
    y.emplace_back();
    for (const auto& weights : w) {
      double sum = 0;
      for (std::size_t k = 0; k < row.size(); ++k) {
        sum += row[k] * weights[k];
      }
      y.back().push_back(to_bf16_grid(sum));
    }
  }
  return y;
}

Rows normed(Rows x, const Rows& weight, double eps) {
  for (auto& row : x) {
    double sum = 0;
    for (const double v : row) {
      sum += v * v;
    }
    const double inverse = 1 / std::sqrt(sum / static_cast<double>(row.size()) + eps);
    for (std::size_t d = 0; d < row.size(); ++d) {
      row[d] = to_bf16_grid(row[d] * inverse * weight[0][d]);
    }
  }
  return x;
}

/// Plain or YaRN frequencies; the plain ones in float32 as the text has them, since a unit there is 0.06 rad at a
/// million.
std::vector<double> frequencies(const ModelConfig& c, std::int64_t ratio) {
  const double theta = ratio == 0 ? c.rope_theta : c.compress_rope_theta;
  const auto dims = static_cast<double>(c.rope_dim);
  const auto corr = [&](double rotations) {
    return dims * std::log(static_cast<double>(c.orig_seq) / (2 * std::acos(-1.0) * rotations)) / (2 * std::log(theta));
  };
  const double low = std::max(std::floor(corr(c.beta_fast)), 0.0);
  const double high = std::min(std::ceil(corr(c.beta_slow)), dims - 1);
  std::vector<double> f;
  for (std::int64_t k = 0; k < c.rope_dim / 2; ++k) {
    const double plain = 1.0F / static_cast<float>(std::pow(theta, 2.0 * static_cast<double>(k) / dims));
    const double ramp = std::min(std::max((static_cast<double>(k) - low) / std::max(high - low, 1e-3), 0.0), 1.0);
    f.push_back(ratio == 0 ? plain : plain / c.rope_factor * ramp + plain * (1 - ramp));
  }
  return f;
}

/// Turns the tail of each row by its position's angle times `direction`.
Rows roped(Rows x, const std::vector<double>& f, const std::vector<std::int64_t>& positions, double direction = 1) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto& row = x[i];
    const std::size_t begin = row.size() - 2 * f.size();
    for (std::size_t k = 0; k < f.size(); ++k) {
      const float product = static_cast<float>(positions[i]) * static_cast<float>(f[k]);
      const double angle = direction * static_cast<double>(product);
      const double re = row[begin + 2 * k];
      const double im = row[begin + 2 * k + 1];
      row[begin + 2 * k] = to_bf16_grid(re * std::cos(angle) - im * std::sin(angle));
      row[begin + 2 * k + 1] = to_bf16_grid(re * std::sin(angle) + im * std::cos(angle));
    }
  }
  return x;
}

std::vector<std::int64_t> repeated(const std::vector<std::int64_t>& positions, std::int64_t times) {
  std::vector<std::int64_t> all;
  for (const std::int64_t position : positions) {
    all.insert(all.end(), static_cast<std::size_t>(times), position);
  }
  return all;
}

/// Another order of a sum makes about one bf16 result in a thousand flip by a unit, and a flip moves what is computed
/// from it a little; leaving out one of the text's roundings changes more than one in ten.
constexpr double kFlippedShare = 0.03;

/// Almost every element equal, the others a few units of the row's largest value apart.
void expect_close(const Rows& found, const Rows& expected, const char* stage) {
  ASSERT_EQ(found.size(), expected.size()) << stage;
  std::size_t flipped = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size()) << stage;
    double largest = 0;
    for (const double v : expected[i]) {
      largest = std::max(largest, std::fabs(v));
    }
    for (std::size_t d = 0; d < found[i].size(); ++d) {
      ASSERT_NEAR(found[i][d], expected[i][d], 2 * bf16_unit(largest)) << stage << " [" << i << ", " << d << "]";
      flipped += found[i][d] == expected[i][d] ? 0 : 1;
      ++count;
    }
  }
  EXPECT_LE(static_cast<double>(flipped), 1 + kFlippedShare * static_cast<double>(count)) << stage;
}

/// One layer's observed call with what is needed to recompute it.
class Recomputed {
 public:
  Recomputed(const TestModel& model, Session& session, std::size_t layer, const CallShape& call)
      : model_(model), layer_(layer), call_(call), x_(session.input(layer, call)) {
    (void)session.run(layer, call, recorder_);
    for (std::int64_t t = 0; t < call.tokens; ++t) {
      tokens_.push_back(call.start_pos + t);
    }
    f_ = frequencies(model.config, role().ratio);
  }

  void check_projections() const {
    const ModelConfig& c = model_.config;
    const Rows x = rows_of(x_, size(c.dim));
    expect_close(stage(kQr, c.q_rank), normed(linear(x, weight("wq_a")), weight("q_norm"), c.eps), "qr");
    Rows q;
    for (const auto& token : linear(stage(kQr, c.q_rank), weight("wq_b"))) {
      for (auto at = token.begin(); at != token.end(); at += c.head_dim) {
        q.emplace_back(at, at + c.head_dim);
      }
    }
    expect_close(stage(kQ, c.head_dim), roped(q, f_, repeated(tokens_, c.n_heads)), "q");
    expect_close(stage(kKvPre, c.head_dim),
                 roped(normed(linear(x, weight("wkv")), weight("kv_norm"), c.eps), f_, tokens_), "kv_pre");
  }

  void check_compression() const {
    const ModelConfig& c = model_.config;
    if (!recorder_.stages.contains(kLatent)) {
      return;
    }
    const Rows latent = stage(kLatent, c.head_dim);
    std::vector<std::int64_t> positions;
    for (std::size_t g = 0; g < latent.size(); ++g) {
      positions.push_back((call_.start_pos / role().ratio + static_cast<std::int64_t>(g)) * role().ratio);
    }
    expect_close(stage(kCompressPre, c.head_dim), roped(latent, f_, positions), "compress_pre");
    if (role().is_index_source) {
      const Rows keys = normed(linear(latent, weight("idx_wk")), weight("idx_k_norm"), c.eps);
      expect_close(stage(kIndexKPre, c.index_head_dim), roped(keys, f_, positions), "index_k_pre");
    }
    if (call_.prefill()) {
      check_pooling(latent);
    }
  }

  void check_index() const {
    const ModelConfig& c = model_.config;
    if (!recorder_.stages.contains(kIndexScore)) {
      return;
    }
    Rows q;
    for (const auto& token : linear(stage(kQr, c.q_rank), weight("idx_wq_b"))) {
      for (auto at = token.begin(); at != token.end(); at += c.index_head_dim) {
        q.emplace_back(at, at + c.index_head_dim);
      }
    }
    expect_close(stage(kIndexQPre, c.index_head_dim), roped(q, f_, repeated(tokens_, c.index_heads)), "index_q_pre");
    Rows w = linear(rows_of(x_, size(c.dim)), weight("idx_weights_proj"));
    for (auto& row : w) {
      for (double& v : row) {
        v = to_bf16_grid(v / std::sqrt(static_cast<double>(c.index_head_dim * c.index_heads)));
      }
    }
    expect_close(stage(kIndexW, c.index_heads), w, "index_w");
  }

  /// rows, idx, lse and o: `cache` holds the published latents' rows.
  void check_attention(const Rows& cache, const Rows& ring) const {
    const ModelConfig& c = model_.config;
    Rows rows = call_.prefill() ? stage(kKv, c.head_dim) : ring;
    const std::int64_t len = role().ratio == 0 ? 0 : (call_.start_pos + call_.tokens) / role().ratio;
    rows.insert(rows.end(), cache.begin(), cache.begin() + len);
    EXPECT_EQ(stage(kRows, c.head_dim), rows);

    const Rows q = stage(kQ, c.head_dim);
    const Rows idx = stage(kIdx, recorder_.stages.at(kIdx).shape()[1]);
    const Rows sink = weight("sink");
    Rows o;
    std::vector<double> lse;
    for (std::size_t i = 0; i < q.size(); ++i) {
      const std::size_t head = i % size(c.n_heads);
      double den = std::exp(sink[0][head]);
      std::vector<double> sum(size(c.head_dim), 0.0);
      for (const double entry : idx[i / size(c.n_heads)]) {
        if (entry < 0) {
          continue;
        }
        const auto& row = rows[static_cast<std::size_t>(entry)];
        double score = 0;
        for (std::size_t d = 0; d < row.size(); ++d) {
          score += q[i][d] * row[d];
        }
        const double share = std::exp(score / std::sqrt(static_cast<double>(c.head_dim)));
        den += share;
        for (std::size_t d = 0; d < row.size(); ++d) {
          sum[d] += share * row[d];
        }
      }
      for (double& v : sum) {
        v = to_bf16_grid(v / den);
      }
      o.push_back(sum);
      lse.push_back(std::log(den));
    }
    expect_close(stage(kO, c.head_dim), o, "o");
    const Rows found = stage(kLse, static_cast<std::int64_t>(lse.size()));
    for (std::size_t i = 0; i < lse.size(); ++i) {
      EXPECT_NEAR(found[0][i], lse[i], 1e-5);
    }
  }

  void check_output() const {
    const ModelConfig& c = model_.config;
    const Rows back = roped(stage(kO, c.head_dim), f_, repeated(tokens_, c.n_heads), -1);
    const Rows wo_a = weight("wo_a");
    const std::size_t heads = size(c.n_heads / c.groups);
    Rows og;
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      og.emplace_back();
      for (std::size_t g = 0; g < size(c.groups); ++g) {
        Rows joined(1);
        for (std::size_t h = 0; h < heads; ++h) {
          const auto& head = back[t * size(c.n_heads) + g * heads + h];
          joined[0].insert(joined[0].end(), head.begin(), head.end());
        }
        const auto first = wo_a.begin() + static_cast<std::ptrdiff_t>(g) * c.o_rank;
        const Rows part = linear(joined, Rows(first, first + c.o_rank));
        og.back().insert(og.back().end(), part[0].begin(), part[0].end());
      }
    }
    expect_close(stage(kOg, c.groups * c.o_rank), og, "og");
    expect_close(stage(kOut, c.dim), linear(stage(kOg, c.groups * c.o_rank), weight("wo_b")), "out");
  }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  [[nodiscard]] const LayerRole& role() const { return model_.roles[layer_]; }
  [[nodiscard]] Rows stage(StageId id, std::int64_t width) const {
    return rows_of(recorder_.stages.at(id), size(width));
  }
  [[nodiscard]] Rows weight(const char* name) const {
    const Tensor& values = model_.weights[layer_].at(name).values;
    return rows_of(values, size(values.shape()[values.shape().rank() - 1]));
  }

  /// A prefill's latents from x: projections unrounded, softmax over each group's members.
  void check_pooling(const Rows& latent) const {
    const ModelConfig& c = model_.config;
    const auto ratio = static_cast<std::size_t>(role().ratio);
    const Rows x = rows_of(x_, size(c.dim));
    const auto project = [&](const char* name, std::size_t token, std::size_t d) {
      const auto row = model_.weights[layer_].at(name).values.as<float>().subspan(d * size(c.dim), size(c.dim));
      double sum = 0;
      for (std::size_t k = 0; k < row.size(); ++k) {
        sum += x[token][k] * static_cast<double>(row[k]);
      }
      return sum;
    };
    Rows pooled;
    if (ratio == 1) {
      pooled = linear(x, weight("comp_wkv"));
    }
    for (std::size_t g = 0; ratio > 1 && g < latent.size(); ++g) {
      pooled.emplace_back();
      for (std::size_t d = 0; d < size(c.head_dim); ++d) {
        double den = 0;
        double sum = 0;
        for (std::size_t m = 0; m < ratio; ++m) {
          const double share = std::exp(project("comp_wgate", g * ratio + m, d));
          den += share;
          sum += share * project("comp_wkv", g * ratio + m, d);
        }
        pooled.back().push_back(to_bf16_grid(sum / den));
      }
    }
    expect_close(latent, normed(pooled, weight("comp_norm"), c.eps), "latent");
  }

  const TestModel& model_;
  std::size_t layer_;
  CallShape call_;
  Tensor x_;
  std::vector<std::int64_t> tokens_;
  std::vector<double> f_;
  Recorder recorder_;
};

TEST(StageArithmetic, OfEveryLayerKindFollowsFromTheStagesBefore) {
  const TestModel model = random_model(small_config(), every_kind());
  Session session(model);
  const auto head = static_cast<std::size_t>(model.config.head_dim);
  for (const CallShape& call : {prefill(7), decode(7), decode(8), decode(9), decode(10), decode(11)}) {
    for (std::size_t layer = 0; layer < model.roles.size(); ++layer) {
      SCOPED_TRACE("layer " + std::to_string(layer) + ", position " + std::to_string(call.start_pos));
      const Recomputed result(model, session, layer, call);
      result.check_projections();
      result.check_compression();
      result.check_index();
      const auto& slot = session.stack().slots().compress_kv;
      Rows cache;
      if (slot) {
        Tensor all(DType::bf16, {slot->value->capacity(), model.config.head_dim});
        slot->value->read(slot->value->capacity(), all.as<Bf16>());
        cache = rows_of(all, head);
      }
      result.check_attention(cache, rows_of(session.stack().state(layer).ring, head));
      result.check_output();
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST(StageArithmetic, AnglesNearAMillionAreTheFloat32Product) {
  // The product in double differs by up to 0.03 rad there, eight bf16 units of a value near 1.
  ModelConfig c = small_config();
  c.max_seq = 1 << 20;
  c.rope_dim = 64;
  const TestModel model = random_model(c, {{.layer_id = 0}});
  constexpr std::int64_t kPosition = 1'048'573;
  Session session(model);
  session.stack().resume(kPosition,
                         std::vector{InitialLayerState{.window = Tensor(DType::bf16, {c.window, c.head_dim}),
                                                       .comp_kv_state = {},
                                                       .comp_score_state = {},
                                                       .compress_kv = {},
                                                       .index_k = {}}},
                         {}, {});
  const Recomputed result(model, session, 0, decode(kPosition));
  result.check_projections();
  result.check_output();
}

}  // namespace
}  // namespace attndiff::deepseek_v41
