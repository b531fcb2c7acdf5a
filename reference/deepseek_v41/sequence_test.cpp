#include "reference/deepseek_v41/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reference/contract/bfloat16.h"
#include "reference/contract/error.h"
#include "reference/deepseek_v41/model_test_support.h"

namespace attndiff::deepseek_v41 {
namespace {

using testing::Each;

std::vector<Bf16> written(const RowCache& cache) { return {cache.written_rows().begin(), cache.written_rows().end()}; }

/// Stages of all layers of one step.
std::vector<Recorder> recorded_step(Session& session, std::size_t layers, const CallShape& call) {
  std::vector<Recorder> all(layers);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    (void)session.run(layer, call, all[layer]);
  }
  return all;
}

void expect_same_stages(const std::vector<Recorder>& a, const std::vector<Recorder>& b) {
  for (std::size_t layer = 0; layer < a.size(); ++layer) {
    ASSERT_EQ(a[layer].order, b[layer].order) << "layer " << layer;
    for (const auto& [id, value] : a[layer].stages) {
      EXPECT_TRUE(same_bytes(value, b[layer].stages.at(id))) << family().stages[id].name << ", layer " << layer;
    }
  }
}

TEST(Sequence, APrefillStartsAfresh) {
  const TestModel model = random_model(small_config(), every_kind());
  Session used(model);
  used.step(prefill(11));
  for (std::int64_t position = 11; position < 20; ++position) {
    used.step(decode(position));
  }
  // Shorter than the window and than a group: whatever the first sequence left would show.
  Session fresh(model);
  for (const CallShape& call : {prefill(1), decode(1), decode(2), decode(3)}) {
    expect_same_stages(recorded_step(used, model.roles.size(), call), recorded_step(fresh, model.roles.size(), call));
  }
  for (std::size_t layer = 0; layer < model.roles.size(); ++layer) {
    if (model.roles[layer].is_kv_source) {
      EXPECT_EQ(written(*used.stack().state(layer).latents), written(*fresh.stack().state(layer).latents));
      EXPECT_EQ(written(*used.stack().state(layer).index_keys), written(*fresh.stack().state(layer).index_keys));
    }
  }
}

TEST(Sequence, APrefillEmptiesTheSlots) {
  const TestModel model = random_model(small_config(), {{.layer_id = 5, .ratio = 1}});
  SharedInputs shared;
  shared.compress_kv = Tensor(DType::bf16, {3, model.config.head_dim});
  shared.selection = Tensor(DType::i32, {3, 3});
  Session session(model);
  (void)session.run(0, prefill(3), &shared);
  EXPECT_EQ(session.stack().slots().compress_kv->owner, -1);
  EXPECT_THROW((void)session.run(0, prefill(3)), Error);
  EXPECT_FALSE(session.stack().slots().compress_kv.has_value());
}

TEST(Sequence, TheRingOfAShortPrefillHasUnwrittenSlots) {
  const TestModel model = random_model(small_config(), {{.layer_id = 0}});
  Session session(model);
  Recorder recorder;
  (void)session.run(0, prefill(2), recorder);
  const auto ring = session.stack().state(0).ring.as<Bf16>();
  const auto kv = std::as_const(recorder.stages.at(kKv)).as<Bf16>();
  EXPECT_TRUE(std::equal(kv.begin(), kv.end(), ring.begin()));
  EXPECT_THAT(ring.subspan(kv.size()), Each(Bf16{}));
}

TEST(Slots, BelongToTheLastSourceOfTheirKind) {
  const TestModel model = random_model(small_config(), every_kind());
  Session session(model);
  session.step(prefill(6));
  const Slots& slots = session.stack().slots();
  EXPECT_EQ(slots.compress_kv->owner, 4);
  EXPECT_EQ(slots.index_k->owner, 4);
  EXPECT_EQ(slots.selection->owner, 5);
  EXPECT_EQ(slots.candidates->owner, 4);
}

TEST(Slots, TheLatentCacheIsPublishedAtEveryCall) {
  const TestModel model = random_model(small_config(), every_kind());
  Session session(model);
  (void)session.run(3, prefill(1));  // ratio 3: no group is complete
  ASSERT_TRUE(session.stack().slots().compress_kv.has_value());
  EXPECT_EQ(session.stack().slots().compress_kv->owner, 3);
  EXPECT_EQ(session.stack().slots().compress_kv->value->written(), 0);
  EXPECT_FALSE(session.stack().slots().index_k.has_value());
  ASSERT_TRUE(session.stack().slots().selection.has_value()) << "an empty selection is published";
  EXPECT_EQ(session.stack().slots().selection->value.shape(), (Shape{1, 0}));
}

/// Index scores of one query from its stages and the keys of a cache.
std::vector<float> scores_against(const Recorder& recorder, const RowCache& cache, const ModelConfig& c) {
  const auto q = recorder.values(kIndexQ);
  const auto w = recorder.values(kIndexW);
  const std::int64_t len = recorder.stages.at(kIndexScore).shape()[1];
  const auto width = static_cast<std::size_t>(c.index_head_dim);
  std::vector<float> scores;
  for (std::int64_t p = 0; p < len; ++p) {
    float sum = 0;
    for (std::size_t h = 0; h < w.size(); ++h) {
      double dot = 0;
      for (std::size_t d = 0; d < width; ++d) {
        dot += static_cast<double>(q[h * width + d]) *
               static_cast<double>(to_float(cache.written_rows()[static_cast<std::size_t>(p) * width + d]));
      }
      sum += round_bf16(std::max(round_bf16(static_cast<float>(dot)), 0.0F) * w[h]);
    }
    scores.push_back(round_bf16(sum));
  }
  return scores;
}

class IndexKeys : public testing::TestWithParam<IndexKeyRule> {};

TEST_P(IndexKeys, OfACallThatCompletesNoGroupFollowTheRule) {
  const bool own = GetParam() == IndexKeyRule::own;
  ModelConfig c = small_config();
  c.index_keys = GetParam();
  const TestModel model =
      random_model(c, {{.layer_id = 10, .ratio = 2, .is_kv_source = true, .is_index_source = true},
                       {.layer_id = 20, .ratio = 1, .is_kv_source = true, .is_index_source = true}});
  Session session(model);
  const Slots& slots = session.stack().slots();
  (void)session.run(0, prefill(6));
  EXPECT_EQ(slots.index_k->owner, 10);
  (void)session.run(1, prefill(6));
  EXPECT_EQ(slots.index_k->owner, 20);

  Recorder incomplete;  // token 6 opens a group of layer 10
  (void)session.run(0, decode(6), incomplete);
  EXPECT_EQ(slots.index_k->owner, own ? 10 : 20);
  EXPECT_EQ(slots.compress_kv->owner, 10) << "latents are published at every call";
  const RowCache& keys = *session.stack().state(own ? 0 : 1).index_keys;
  EXPECT_EQ(incomplete.values(kIndexScore), scores_against(incomplete, keys, c));
  const RowCache& others = *session.stack().state(own ? 1 : 0).index_keys;
  EXPECT_NE(incomplete.values(kIndexScore), scores_against(incomplete, others, c));

  (void)session.run(1, decode(6));
  Recorder complete;  // token 7 completes it
  (void)session.run(0, decode(7), complete);
  EXPECT_EQ(slots.index_k->owner, 10);
  EXPECT_EQ(complete.values(kIndexScore), scores_against(complete, *session.stack().state(0).index_keys, c));
}

INSTANTIATE_TEST_SUITE_P(Rules, IndexKeys, testing::Values(IndexKeyRule::slot, IndexKeyRule::own),
                         [](const auto& rule) { return std::string(name_of(rule.param)); });

Tensor half(const Tensor& comp_state, std::size_t which) {
  const auto from = comp_state.as<float>();
  Tensor t(DType::f32, {comp_state.shape()[1], comp_state.shape()[2]});
  const std::size_t count = from.size() / 2;
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(which * count), count, t.as<float>().begin());
  return t;
}

Tensor rows_of(const RowCache& cache) {
  Tensor t(DType::bf16, {cache.written(), cache.width()});
  std::copy(cache.written_rows().begin(), cache.written_rows().end(), t.as<Bf16>().begin());
  return t;
}

/// What a fixture that starts here would declare.
std::vector<InitialLayerState> declared(const LayerStack& stack, std::size_t layers) {
  std::vector<InitialLayerState> states(layers);
  for (std::size_t i = 0; i < layers; ++i) {
    const LayerState& state = stack.state(i);
    states[i].window = state.ring;
    if (state.comp_state.defined()) {
      states[i].comp_kv_state = half(state.comp_state, 0);
      states[i].comp_score_state = half(state.comp_state, 1);
    }
    if (state.latents != nullptr) {
      states[i].compress_kv = rows_of(*state.latents);
      states[i].index_k = rows_of(*state.index_keys);
    }
  }
  return states;
}

TEST(Resume, ContinuesAsIfItHadRunFromTheStart) {
  const TestModel model = random_model(small_config(), every_kind());
  for (const std::int64_t start : {9, 10, 11}) {
    Session whole(model);
    whole.step(prefill(7));
    for (std::int64_t position = 7; position < start; ++position) {
      whole.step(decode(position));
    }
    Session resumed(model);
    resumed.stack().resume(start, declared(whole.stack(), model.roles.size()), {}, {});
    for (std::int64_t position = start; position < start + 4; ++position) {
      SCOPED_TRACE("start " + std::to_string(start) + ", position " + std::to_string(position));
      expect_same_stages(recorded_step(whole, model.roles.size(), decode(position)),
                         recorded_step(resumed, model.roles.size(), decode(position)));
    }
  }
}

TEST(Resume, SlotsBelongToTheLastSourceOrToTheNamedOne) {
  const TestModel model = random_model(small_config(), every_kind());
  Session whole(model);
  whole.step(prefill(9));
  const auto states = declared(whole.stack(), model.roles.size());
  Session unnamed(model);
  unnamed.stack().resume(9, states, {}, {});
  EXPECT_EQ(unnamed.stack().slots().compress_kv->owner, 4);
  EXPECT_EQ(unnamed.stack().slots().index_k->owner, 4);
  EXPECT_FALSE(unnamed.stack().slots().selection.has_value());
  Session named(model);
  named.stack().resume(9, states, 1, 3);
  EXPECT_EQ(named.stack().slots().compress_kv->owner, 1);
  EXPECT_EQ(named.stack().slots().index_k->owner, 3);
  EXPECT_EQ(named.stack().slots().index_k->value, named.stack().state(3).index_keys);
}

}  // namespace
}  // namespace attndiff::deepseek_v41
