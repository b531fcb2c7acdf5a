#include "device/selection.h"

#include <gtest/gtest.h>

#include "device/model_test_support.h"

namespace attndiff::device {
namespace {

ModelConfig config() {
  ModelConfig c = micro_config();
  c.index_topk = 2;
  c.cand_topk_blocks = 1;
  return c;
}

std::vector<Bf16> scores_of(const std::vector<float>& values) {
  std::vector<Bf16> out;
  out.reserve(values.size());
  for (const float v : values) {
    out.push_back(to_bf16(v));
  }
  return out;
}

TEST(Selection, PrefillSeesOnlyFinishedGroups) {
  const LayerRole role = micro_layers()[1];  // ratio 2
  const ModelConfig c = config();
  const CallShape call{.tokens = 5, .start_pos = 0};
  // Position 1 always scores higher, but only queries 3 and 4 may see it.
  const auto scores = scores_of({1, 9, 1, 9, 1, 9, 1, 9, 1, 9});
  reference::ThreadPool pool(2);
  const Tensor picks = select_positions({c, role, call, scores, 2}, nullptr, pool);
  const std::vector<std::int32_t> want{-1, -1, 0, -1, 0, -1, 0, 1, 0, 1};
  const auto got = picks.as<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(got.begin(), got.end()), want);
}

TEST(Selection, TheMaskLimitsThePicksAndPinsTheNewestBlock) {
  const LayerRole role = micro_layers()[3];  // ratio 1
  const ModelConfig c = config();
  const CallShape call{.tokens = 1, .start_pos = 5};
  const auto scores = scores_of({9, 8, 7, 6, 1, 2});
  reference::ThreadPool pool(1);
  const ScoreRows rows{c, role, call, scores, 6};
  const Tensor mask = candidate_mask(rows, pool);
  const auto kept = mask.as<std::uint8_t>();
  EXPECT_EQ(std::vector<std::uint8_t>(kept.begin(), kept.end()), (std::vector<std::uint8_t>{0, 0, 0, 0, 1, 1}));
  const Tensor free = select_positions(rows, nullptr, pool);
  EXPECT_EQ(free.as<std::int32_t>()[0], 0);
  EXPECT_EQ(free.as<std::int32_t>()[1], 1);
  const Tensor limited = select_positions(rows, &mask, pool);
  EXPECT_EQ(limited.as<std::int32_t>()[0], 4);
  EXPECT_EQ(limited.as<std::int32_t>()[1], 5);
}

TEST(Selection, ThreadsDoNotChangeIt) {
  const LayerRole role = micro_layers()[3];
  const ModelConfig c = micro_config();
  const CallShape call{.tokens = 40, .start_pos = 0};
  std::vector<float> values(1600);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 37 % 11);
  }
  const auto scores = scores_of(values);
  reference::ThreadPool one(1);
  reference::ThreadPool many(7);
  const Tensor a = select_positions({c, role, call, scores, 40}, nullptr, one);
  const Tensor b = select_positions({c, role, call, scores, 40}, nullptr, many);
  EXPECT_TRUE(std::equal(a.as<std::int32_t>().begin(), a.as<std::int32_t>().end(), b.as<std::int32_t>().begin()));
}

}  // namespace
}  // namespace attndiff::device
