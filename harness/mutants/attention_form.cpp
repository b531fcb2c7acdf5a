#include "harness/mutants/attention_form.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace attndiff::mutants {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

float dot(std::span<const float> a, std::span<const float> b) {
  float sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) {
    sum += a[d] * b[d];
  }
  return sum;
}

/// `v` with `bits` significant bits, ties to even.
float keep_bits(float v, int bits) {
  if (v == 0 || !std::isfinite(v)) {
    return v;
  }
  int exponent = 0;
  const float fraction = std::frexp(v, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

/// One head's running softmax.
struct Running {
  float m = kMinusInfinity;
  float den = 0;
  std::vector<float> sum;

  void rescale(float to) {
    const float factor = m == to ? 1.0F : std::exp(m - to);
    den *= factor;
    for (float& v : sum) {
      v *= factor;
    }
    m = to;
  }
};

class Head {
 public:
  Head(const AttentionForm& form, const reference::SparseAttentionArgs& args, std::span<const float> q)
      : form_(form), args_(args), q_(q), row_(q.size()) {
    running_.sum.resize(q.size());
  }

  void add_tile(std::span<const std::int32_t> idx) {
    std::vector<float> scores;
    float largest = running_.m;
    for (const std::int32_t i : idx) {
      scores.push_back(score_of(i));
      largest = std::max(largest, scores.back());
    }
    if (largest == kMinusInfinity && form_.guarded) {
      return;
    }
    running_.rescale(largest);
    for (std::size_t j = 0; j < idx.size(); ++j) {
      // Unguarded, a tile without entries leaves the maximum at -inf, and -inf - -inf is NaN.
      const float p = std::exp(scores[j] - running_.m);
      running_.den += p;
      add_row(idx[j], keep_bits(p, form_.weight_bits));
    }
  }

  float finish(float sink, std::span<float> o) {
    if (form_.sink_in_maximum) {
      running_.rescale(std::max(running_.m, sink));
    }
    if (form_.sink_in_denominator) {
      running_.den += std::exp(sink - running_.m);
    }
    std::transform(running_.sum.begin(), running_.sum.end(), o.begin(), [&](float v) { return v / running_.den; });
    return (running_.m + std::log(running_.den)) / form_.lse_unit;
  }

 private:
  [[nodiscard]] float score_of(std::int32_t i) {
    if (i < 0) {
      return form_.absent_score;
    }
    args_.rows.copy_row(i, row_);
    return dot(q_, row_) * args_.scale * form_.scale_factor;
  }

  void add_row(std::int32_t i, float weight) {
    if (i >= 0) {
      args_.rows.copy_row(i, row_);
    } else if (form_.poison) {
      std::fill(row_.begin(), row_.end(), *form_.poison);
    } else {
      return;
    }
    for (std::size_t d = 0; d < row_.size(); ++d) {
      running_.sum[d] += weight * row_[d];
    }
  }

  const AttentionForm& form_;
  const reference::SparseAttentionArgs& args_;
  std::span<const float> q_;
  std::vector<float> row_;
  Running running_;
};

}  // namespace

void AttentionForm::operator()(const reference::SparseAttentionArgs& args) const {
  const std::size_t heads = args.sink.size();
  const std::size_t width = args.q.size() / heads;
  const std::size_t step = tile > 0 ? static_cast<std::size_t>(tile) : std::max<std::size_t>(args.idx.size(), 1);
  for (std::size_t h = 0; h < heads; ++h) {
    Head head(*this, args, args.q.subspan(h * width, width));
    for (std::size_t j = 0; j < args.idx.size(); j += step) {
      head.add_tile(args.idx.subspan(j, std::min(step, args.idx.size() - j)));
    }
    args.lse[h] = head.finish(args.sink[(h + sink_shift) % heads], args.o.subspan(h * width, width));
  }
}

}  // namespace attndiff::mutants
