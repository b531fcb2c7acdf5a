#include <algorithm>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"
#include "reference/contract/bfloat16.h"
#include "reference/indexer.h"

namespace attndiff::mutants {
namespace {

using deepseek_v41::Steps;
using reference::IndexScoreArgs;

float rounded(float v) { return round_bf16(v); }
float unrounded(float v) { return v; }

float rectified_then_weighted(float dot, float w) { return std::max(dot, 0.0F) * w; }
float weighted_then_rectified(float dot, float w) { return std::max(dot * w, 0.0F); }
float not_rectified(float dot, float w) { return dot * w; }

/// A head's part of a score, and the roundings of the dot and of the part.
struct ScoreForm {
  float (*part)(float dot, float w) = rectified_then_weighted;
  float (*round_dot)(float) = rounded;
  float (*round_part)(float) = rounded;
  std::size_t heads_left_out = 0;

  void operator()(const IndexScoreArgs& a) const {
    const std::size_t width = a.q.size() / a.w.size();
    for (std::size_t p = 0; p < a.out.size(); ++p) {
      float sum = 0;
      for (std::size_t h = 0; h + heads_left_out < a.w.size(); ++h) {
        float dot = 0;
        for (std::size_t d = 0; d < width; ++d) {
          dot += a.q[h * width + d] * a.keys[p * width + d];
        }
        sum += round_part(part(round_dot(dot), a.w[h]));
      }
      a.out[p] = sum;
    }
  }
};

/// Sums the heads' parts in bfloat16.
void sum_in_bf16(const IndexScoreArgs& a) {
  const std::size_t width = a.q.size() / a.w.size();
  std::vector<float> part(a.out.size());
  std::fill(a.out.begin(), a.out.end(), 0.0F);
  for (std::size_t h = 0; h < a.w.size(); ++h) {
    reference::index_scores({.q = a.q.subspan(h * width, width), .keys = a.keys, .w = a.w.subspan(h, 1), .out = part});
    std::transform(part.begin(), part.end(), a.out.begin(), a.out.begin(),
                   [](float p, float sum) { return round_bf16(sum + p); });
  }
}

}  // namespace

std::vector<Mutant> index_mutants() {
  const auto scores = [](const std::string& name, const std::string& description, const ScoreForm& form) {
    return step_fault(name, description, {"index_score", "micro"}, &Steps::index_scores, form);
  };
  return {
      step_fault("index-weight-rounded-once", "the projected index weight is scaled before it is rounded",
                 {"index_w", "micro"}, &Steps::scaled_index_weight,
                 [](float projected, float c) { return projected * c; }),
      step_fault("index-weight-scale", "the index weight's scale leaves out the number of heads", {"index_w", "micro"},
                 &Steps::scaled_index_weight,
                 [](float projected, float c) {
                   constexpr float kHeads = 1.7320508F;  // sqrt(3): micro's index heads
                   return reference::scaled_index_weight(projected, c * kHeads);
                 }),
      scores("rectifier-dropped", "negative dots count", {.part = not_rectified}),
      scores("weight-before-rectifier", "the weight multiplies the dot before it is rectified",
             {.part = weighted_then_rectified}),
      scores("dot-not-rounded", "a head's dot is not rounded to bfloat16", {.round_dot = unrounded}),
      scores("weighted-dot-not-rounded", "a head's weighted dot is not rounded to bfloat16", {.round_part = unrounded}),
      scores("last-index-head-missing", "the last index head is left out", {.heads_left_out = 1}),
      step_fault("score-summed-in-bf16", "the heads' parts are summed in bfloat16", {"index_score", "mid"},
                 &Steps::index_scores, sum_in_bf16),
      fault("own-index-keys", "a kv source scores against its own keys where the released code takes the slot's",
            {"index_score", "micro"},
            with_start({.config = [](ModelConfig& config) { config.index_keys = IndexKeyRule::own; }})),
  };
}

}  // namespace attndiff::mutants
