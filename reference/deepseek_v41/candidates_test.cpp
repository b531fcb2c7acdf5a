// Which scores a selection is made from: all, those of the candidate mask, or none of a hidden position.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/deepseek_v41/model_test_support.h"

namespace attndiff::deepseek_v41 {
namespace {

constexpr std::int64_t kTokens = 20;

/// A candidate source and the index source that follows it, after a prefill.
struct Selections {
  explicit Selections(bool uses_candidates)
      : model(random_model(
            small_config(),
            {{.layer_id = 0, .ratio = 1, .is_kv_source = true, .is_index_source = true, .is_candidate_source = true},
             {.layer_id = 1, .ratio = 1, .is_index_source = true, .uses_candidates = uses_candidates}})) {
    Session session(model);
    (void)session.run(0, prefill(kTokens), source);
    (void)session.run(1, prefill(kTokens), follower);
  }

  TestModel model;
  Recorder source;
  Recorder follower;
};

/// Scores of the picks of query `t`, best first.
std::vector<float> picked_scores(const Recorder& layer, std::size_t t) {
  const auto scores = layer.values(kIndexScore);
  const Tensor& selection = layer.stages.at(kSelection);
  const auto columns = static_cast<std::size_t>(selection.shape()[1]);
  std::vector<float> picked;
  for (const std::int32_t p : selection.as<std::int32_t>().subspan(t * columns, columns)) {
    if (p >= 0) {
      picked.push_back(scores[t * kTokens + static_cast<std::size_t>(p)]);
    }
  }
  std::sort(picked.begin(), picked.end(), std::greater<>());
  return picked;
}

/// The best index_topk scores of query `t` among the positions allowed, by sorting; nothing about ties.
std::vector<float> best_scores(const Recorder& layer, std::size_t t, const std::vector<bool>& allowed) {
  const auto scores = layer.values(kIndexScore);
  std::vector<float> best;
  for (std::size_t p = 0; p <= t; ++p) {
    if (allowed[p]) {
      best.push_back(scores[t * kTokens + p]);
    }
  }
  std::sort(best.begin(), best.end(), std::greater<>());
  best.resize(std::min<std::size_t>(best.size(), 3));
  return best;
}

std::vector<bool> mask_of(const Recorder& source, std::size_t t) {
  const auto row = source.stages.at(kCandidates).as<std::uint8_t>().subspan(t * kTokens, kTokens);
  std::vector<bool> mask(row.size());
  std::transform(row.begin(), row.end(), mask.begin(), [](std::uint8_t v) { return v != 0; });
  return mask;
}

const std::vector<bool>& everything() {
  static const std::vector<bool> kAll(kTokens, true);
  return kAll;
}

TEST(Candidates, TheSourceDoesNotApplyItsOwnMask) {
  const Selections s(true);
  int outside = 0;
  for (std::size_t t = 0; t < kTokens; ++t) {
    EXPECT_EQ(picked_scores(s.source, t), best_scores(s.source, t, everything())) << t;
    outside += best_scores(s.source, t, everything()) == best_scores(s.source, t, mask_of(s.source, t)) ? 0 : 1;
  }
  EXPECT_GT(outside, 0) << "the mask would have changed nothing";
}

TEST(Candidates, AnIndexSourceThatUsesThemPicksAmongThem) {
  const Selections s(true);
  int narrowed = 0;
  for (std::size_t t = 3; t < kTokens; ++t) {  // from here on the two kept blocks hold at least three visible positions
    const auto best = best_scores(s.follower, t, mask_of(s.source, t));
    ASSERT_EQ(best.size(), 3U);
    EXPECT_EQ(picked_scores(s.follower, t), best) << t;
    narrowed += best == best_scores(s.follower, t, everything()) ? 0 : 1;
  }
  EXPECT_GT(narrowed, 0) << "the mask would have changed nothing";
}

TEST(Candidates, AnIndexSourceThatDoesNotPicksAmongAll) {
  const Selections s(false);
  for (std::size_t t = 0; t < kTokens; ++t) {
    EXPECT_EQ(picked_scores(s.follower, t), best_scores(s.follower, t, everything())) << t;
  }
}

TEST(Candidates, AreTheBestBlocksWithTheNewest) {
  const Selections s(true);
  const auto scores = s.source.values(kIndexScore);
  for (std::size_t t = 0; t < kTokens; ++t) {
    const auto mask = mask_of(s.source, t);
    const std::size_t newest = t / 2;
    // One block besides the newest: none of the others that are visible has a better best score.
    const auto block_score = [&](std::size_t b) {
      float best = scores[t * kTokens + 2 * b];
      return 2 * b + 1 <= t ? std::max(best, scores[t * kTokens + 2 * b + 1]) : best;
    };
    std::vector<std::size_t> kept;
    for (std::size_t b = 0; b < kTokens / 2; ++b) {
      EXPECT_EQ(mask[2 * b], mask[2 * b + 1]) << "a block is kept whole";
      if (mask[2 * b]) {
        kept.push_back(b);
      }
    }
    ASSERT_EQ(kept.size(), newest == 0 ? 1U : 2U) << t;
    EXPECT_EQ(kept.back(), newest) << t;
    for (std::size_t b = 0; b < newest; ++b) {
      EXPECT_LE(block_score(b), block_score(kept.front())) << t;
    }
  }
}

TEST(Candidates, WhenTheMaskHoldsTooFewHiddenByItPositionsFillTheSelection) {
  const TestModel model =
      random_model(small_config(), {{.layer_id = 1, .ratio = 1, .is_index_source = true, .uses_candidates = true}});
  std::mt19937 engine(6);
  SharedInputs shared;
  shared.compress_kv = random_tensor(engine, DType::bf16, {8, model.config.head_dim}, 0, 1);
  shared.index_k = random_tensor(engine, DType::bf16, {8, model.config.index_head_dim}, 0, 1);
  shared.candidates = Tensor(DType::u8, {8, 8});  // empty
  shared.candidates.as<std::uint8_t>()[std::size_t{7} * 8 + 5] = 1;
  Session session(model);
  Recorder recorder;
  (void)session.run(0, prefill(8), recorder, &shared);
  const auto picks = std::as_const(recorder.stages.at(kSelection)).as<std::int32_t>().subspan(std::size_t{7} * 3);
  EXPECT_EQ(std::count(picks.begin(), picks.end(), 5), 1);
  EXPECT_EQ(std::count(picks.begin(), picks.end(), -1), 0) << "masked but visible picks stay in";
}

}  // namespace
}  // namespace attndiff::deepseek_v41
