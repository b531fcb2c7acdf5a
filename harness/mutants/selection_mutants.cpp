#include "reference/selection.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"
#include "harness/mutants/selection_orders.h"
#include "reference/topk.h"

namespace attndiff::mutants {
namespace {

using deepseek_v41::Steps;
using Scores = std::span<const float>;
using Picks = std::span<std::int32_t>;
using Mask = std::span<std::uint8_t>;

/// Ranks by the bit pattern of the magnitude, as a radix selection that drops the sign: -inf leads.
std::vector<std::int32_t> sign_dropped_topk(Scores s, std::int64_t k) {
  return first_k(s.size(), k, [&](auto a, auto b) { return std::fabs(at(s, a)) > std::fabs(at(s, b)); });
}

/// Sign and exponent of a score, ordered as the scores are: the bucket of a radix selection's first pass.
std::int32_t bucket_of(float score) {
  constexpr int kFractionBits = 23;
  const auto exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(std::fabs(score)) >> kFractionBits);
  return std::signbit(score) ? -exponent : exponent;
}

/// A radix selection whose threshold bucket holds no more positions than are still to be picked, and drops later ones.
std::vector<std::int32_t> truncated_bucket_topk(Scores s, std::int64_t k) {
  return first_k(s.size(), k, [&](auto a, auto b) { return bucket_of(at(s, a)) > bucket_of(at(s, b)); });
}

template <typename Topk>
std::function<void(Scores, std::int64_t, Picks)> select_by(Topk topk) {
  return
      [topk](Scores scores, std::int64_t visible, Picks picks) { reference::select_row(scores, visible, picks, topk); };
}

void one_pick_too_few(Scores scores, std::int64_t visible, Picks picks) {
  std::fill(picks.begin(), picks.end(), -1);
  if (!picks.empty()) {
    reference::select_row(scores, visible, picks.first(picks.size() - 1));
  }
}

void duplicate_pick(Scores scores, std::int64_t visible, Picks picks) {
  reference::select_row(scores, visible, picks);
  if (picks.size() > 1) {
    picks[1] = picks[0];
  }
}

void best_first(Scores scores, std::int64_t visible, Picks picks) {
  reference::select_row(scores, visible, picks);
  std::stable_sort(picks.begin(), picks.end(),
                   [&](auto a, auto b) { return (a < 0 || b < 0) ? b < a : at(scores, a) > at(scores, b); });
}

void masked_picks_dropped(Scores scores, std::int64_t visible, Picks picks) {
  reference::select_row(scores, visible, picks);
  for (std::int32_t& p : picks) {
    p = p >= 0 && std::isinf(at(scores, p)) ? -1 : p;
  }
}

void newest_not_pinned(Scores scores, std::int64_t /*visible*/, const ModelConfig& config, Mask mask) {
  constexpr std::int64_t kNothingVisible = 0;
  reference::candidate_mask_row(scores, kNothingVisible, config, mask);
}

void pinned_one_late(Scores scores, std::int64_t visible, const ModelConfig& config, Mask mask) {
  const std::int64_t after = std::min<std::int64_t>(visible + 1, static_cast<std::int64_t>(scores.size()));
  reference::candidate_mask_row(scores, after, config, mask);
}

void whole_blocks_only(Scores scores, std::int64_t visible, const ModelConfig& config, Mask mask) {
  reference::candidate_mask_row(scores, visible, config, mask);
  const auto block = static_cast<std::size_t>(config.cand_block);
  const auto tail = mask.subspan(mask.size() / block * block);
  std::fill(tail.begin(), tail.end(), std::uint8_t{0});
}

void one_block_too_few(Scores scores, std::int64_t visible, const ModelConfig& config, Mask mask) {
  ModelConfig fewer = config;
  --fewer.cand_topk_blocks;
  reference::candidate_mask_row(scores, visible, fewer, mask);
}

void invisible_blocks_kept(Scores scores, std::int64_t visible, const ModelConfig& config, Mask mask) {
  std::vector<float> finite(scores.begin(), scores.end());
  constexpr float kVeryLow = -1e30F;  // stands in for -inf, as in kernels that mask with a large negative number
  std::replace_if(
      finite.begin(), finite.end(), [](float s) { return std::isinf(s); }, kVeryLow);
  reference::candidate_mask_row(finite, visible, config, mask);
}

}  // namespace

std::vector<Mutant> selection_mutants() {
  const Due selection_mid{"selection", "mid"};
  const Due candidates_mid{"candidates", "mid"};
  return {
      step_fault("newest-block-not-pinned", "the newest visible block has to earn its place", candidates_mid,
                 &Steps::candidate_mask_row, newest_not_pinned),
      step_fault("block-pinned-one-late", "the block of the next position is pinned", candidates_mid,
                 &Steps::candidate_mask_row, pinned_one_late),
      step_fault("candidate-mask-truncated", "the mask leaves out a last block that is not whole", candidates_mid,
                 &Steps::candidate_mask_row, whole_blocks_only),
      step_fault("one-candidate-block-too-few", "one block less than the configuration says is kept", candidates_mid,
                 &Steps::candidate_mask_row, one_block_too_few),
      step_fault("invisible-blocks-kept", "invisible blocks have a very low score instead of -inf, and fill the mask",
                 candidates_mid, &Steps::candidate_mask_row, invisible_blocks_kept),
      step_fault("candidate-mask-ignored", "index sources choose from all positions", selection_mid,
                 &Steps::applies_candidates, [](const LayerRole&) { return false; }),
      step_fault("candidate-source-masks-itself", "the candidate source applies its own mask", selection_mid,
                 &Steps::applies_candidates,
                 [](const LayerRole& role) { return role.uses_candidates || role.is_candidate_source; }),
      step_fault("masked-before-valid", "masked positions are picked before all others", selection_mid,
                 &Steps::select_row, select_by(masked_first_topk)),
      step_fault("score-sign-dropped", "scores are ranked by magnitude", selection_mid, &Steps::select_row,
                 select_by(sign_dropped_topk)),
      step_fault("topk-bucket-truncated", "the threshold's bucket keeps its first positions, not its best",
                 selection_mid, &Steps::select_row, select_by(truncated_bucket_topk)),
      step_fault("one-pick-too-few", "the lowest of the k picks is absent", selection_mid, &Steps::select_row,
                 one_pick_too_few),
      step_fault("duplicate-pick", "one position is picked twice in place of another", selection_mid,
                 &Steps::select_row, duplicate_pick),
      step_fault("picks-by-score", "picks are listed best first instead of ascending", selection_mid,
                 &Steps::select_row, best_first),
      step_fault("tie-order-reversed", "of equal scores the highest positions win", {"selection", "tiny-ties"},
                 &Steps::select_row, select_by(last_index_topk)),
      step_fault("ties-by-lowest-index", "of equal scores the lowest positions win", {"selection", "tiny-ties"},
                 &Steps::select_row, select_by(lowest_index_topk)),
      step_fault("masked-picks-dropped", "a pick that is masked but visible is made absent",
                 {"selection", "one-candidate-block"}, &Steps::select_row, masked_picks_dropped),
  };
}

}  // namespace attndiff::mutants
