#include "device/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "device/model_test_support.h"
#include "device/workspace.h"
#include "reference/contract/error.h"

namespace attndiff::device {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kHopperShared = 227 * 1024;

std::string refusal_of(const std::function<void()>& call, ErrorKind kind = ErrorKind::refused) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "accepted";
}

const CallShape kPrefill{.tokens = 21, .start_pos = 0};
const CallShape kDecode{.tokens = 1, .start_pos = 21};

SlotFacts full_slots(const CallShape& call, std::int64_t ratio) {
  const ModelConfig c = micro_config();
  const std::int64_t len = (call.start_pos + call.tokens) / ratio;
  return {.compress_kv = CacheSlotFacts{.owner = 3, .rows = len, .width = c.head_dim},
          .index_k = CacheSlotFacts{.owner = 3, .rows = len, .width = c.index_head_dim},
          .selection = TensorSlotFacts{.owner = 3, .shape = {call.tokens, std::min(c.index_topk, len)}},
          .candidates = TensorSlotFacts{.owner = 3, .shape = {call.tokens, len}}};
}

TEST(Refusals, FullSlotsAreAccepted) {
  for (const LayerRole& role : micro_layers()) {
    for (const CallShape& call : {kPrefill, kDecode}) {
      EXPECT_NO_THROW(check_slots(micro_config(), role, call, full_slots(call, std::max<std::int64_t>(1, role.ratio))));
    }
  }
}

TEST(Refusals, AMissingSlotNamesLayerAndSlot) {
  const auto layers = micro_layers();
  SlotFacts slots = full_slots(kDecode, 1);
  slots.compress_kv.reset();
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), layers[5], kDecode, slots); }),
              HasSubstr("layer 5: slot compress_kv"));
  slots = full_slots(kDecode, 1);
  slots.selection.reset();
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), layers[5], kDecode, slots); }),
              HasSubstr("layer 5: slot selection"));
  slots = full_slots(kDecode, 1);
  slots.index_k.reset();
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), layers[4], kDecode, slots); }),
              HasSubstr("layer 4: slot index_k"));
  slots = full_slots(kDecode, 1);
  slots.candidates.reset();
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), layers[4], kDecode, slots); }),
              HasSubstr("layer 4: slot candidates"));
}

TEST(Refusals, IndexKeysOfASourceWithoutALatentFollowTheRule) {
  const LayerRole source = micro_layers()[1];
  const CallShape no_group{.tokens = 1, .start_pos = 22};  // (22 + 1) % 2 != 0
  SlotFacts slots;
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), source, no_group, slots); }), HasSubstr("slot index_k"));
  ModelConfig own = micro_config();
  own.index_keys = IndexKeyRule::own;
  EXPECT_NO_THROW(check_slots(own, source, no_group, slots));
  const CallShape group{.tokens = 1, .start_pos = 21};
  EXPECT_NO_THROW(check_slots(micro_config(), source, group, slots));
}

TEST(Refusals, NothingIsNeededBeforeTheFirstGroup) {
  const CallShape one{.tokens = 1, .start_pos = 0};
  EXPECT_NO_THROW(check_slots(micro_config(), micro_layers()[2], one, {}));
}

TEST(Refusals, WrongWidthsAndTooFewRows) {
  const LayerRole reader = micro_layers()[5];
  SlotFacts slots = full_slots(kDecode, 1);
  slots.selection->shape = Shape{1, 4};
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), reader, kDecode, slots); }), HasSubstr("[1, 5]"));
  slots.selection->shape = Shape{1, 14};
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), reader, kDecode, slots); }),
              HasSubstr("wider than window + index_topk"));
  slots = full_slots(kDecode, 1);
  slots.compress_kv->rows = 21;
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), reader, kDecode, slots); }), HasSubstr("too few rows"));
  slots.compress_kv->width = 64;
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), reader, kDecode, slots); }), HasSubstr("wrong width"));
  slots = full_slots(kDecode, 1);
  slots.candidates->shape = Shape{1, 21};
  EXPECT_THAT(refusal_of([&] { check_slots(micro_config(), micro_layers()[4], kDecode, slots); }),
              HasSubstr("slot candidates"));
}

TEST(Refusals, ACallMustContinueItsSequence) {
  const LayerRole role = micro_layers()[0];
  EXPECT_NO_THROW(check_continues(role, kPrefill, 17));
  EXPECT_NO_THROW(check_continues(role, kDecode, 21));
  EXPECT_THAT(refusal_of([&] { check_continues(role, kDecode, 20); }), HasSubstr("does not continue"));
}

TEST(Refusals, EntriesMustNameRows) {
  const LayerRole role = micro_layers()[0];
  const std::vector<std::int32_t> good{-1, 0, 9};
  EXPECT_NO_THROW(check_entries(role, "idx", good, Shape{1, 3}, 10));
  const std::vector<std::int32_t> high{-1, 0, 10};
  EXPECT_THAT(refusal_of([&] { check_entries(role, "idx", high, Shape{1, 3}, 10); }), HasSubstr("[0, 2]"));
  const std::vector<std::int32_t> low{-2, 0, 1};
  EXPECT_THAT(refusal_of([&] { check_entries(role, "idx", low, Shape{1, 3}, 10); }), HasSubstr("[0, 0]"));
}

TEST(Refusals, UnsupportedDimensions) {
  const auto layers = micro_layers();
  EXPECT_NO_THROW(check_supported(micro_config(), layers, kHopperShared));
  const auto with = [&](std::int64_t ModelConfig::*member, std::int64_t value) {
    ModelConfig c = micro_config();
    c.*member = value;
    return refusal_of([&] { check_supported(c, layers, kHopperShared); });
  };
  EXPECT_THAT(with(&ModelConfig::head_dim, 100), HasSubstr("head_dim"));
  EXPECT_THAT(with(&ModelConfig::rope_dim, 31), HasSubstr("rope_dim"));
  EXPECT_THAT(with(&ModelConfig::rope_dim, 96), HasSubstr("rope_dim"));  // more than index_head_dim
  EXPECT_THAT(with(&ModelConfig::index_head_dim, 72), HasSubstr("index_head_dim"));
  EXPECT_THAT(with(&ModelConfig::window, 60000), HasSubstr("shared memory"));
  EXPECT_THAT(with(&ModelConfig::index_heads, 2000), HasSubstr("shared memory"));
  EXPECT_THAT(with(&ModelConfig::max_seq, std::int64_t{1} << 31), HasSubstr("range of an index"));
}

TEST(Refusals, AContradictoryConfigurationIsAnInputError) {
  ModelConfig c = micro_config();
  c.groups = 4;
  EXPECT_THAT(refusal_of([&] { check_supported(c, micro_layers(), kHopperShared); }, ErrorKind::input),
              HasSubstr("groups"));
}

TEST(WorkspaceSizes, MicroConfiguration) {
  const ModelConfig c = micro_config();
  const auto layers = micro_layers();
  const WorkspaceSizes s = workspace_sizes(c, layers);
  EXPECT_EQ(s.x, 40 * 160);
  EXPECT_EQ(s.q, 40 * 6 * 96);
  EXPECT_EQ(s.members, 40 * 96);
  EXPECT_EQ(s.latent, 40 * 96);  // ratio 1: a group a token
  EXPECT_EQ(s.index_k, 40 * 64);
  EXPECT_EQ(s.scores, 40 * 40);  // prefill's outnumber decode's 128
  EXPECT_EQ(s.idx, 40 * (8 + 5));
  EXPECT_EQ(s.activation, 40 * 160);
}

TEST(WorkspaceSizes, DecodeAtALongSequenceSetsTheScores) {
  ModelConfig c = micro_config();
  c.max_seq = 1 << 20;
  c.max_tokens = 4;
  EXPECT_EQ(workspace_sizes(c, micro_layers()).scores, 1 << 20);
}

TEST(WorkspaceSizes, WindowOnlyLayersNeedNoIndexer) {
  const std::vector<LayerRole> layers{{.layer_id = 0, .ratio = 0}};
  const WorkspaceSizes s = workspace_sizes(micro_config(), layers);
  EXPECT_EQ(s.scores + s.index_q + s.index_k + s.latent + s.members, 0);
  EXPECT_EQ(s.idx, 40 * 8);
}

TEST(WorkspaceSizes, PaddingReachesTheLimitOfTheSequence) {
  ModelConfig c = micro_config();
  const LayerRole ratio2 = micro_layers()[1];
  EXPECT_EQ(padded_selection_columns(c, ratio2), 5);
  c.max_seq = 8;
  c.max_tokens = 8;
  EXPECT_EQ(padded_selection_columns(c, ratio2), 4);  // 8 / 2 positions
  EXPECT_EQ(padded_selection_columns(c, micro_layers()[0]), 0);
}

}  // namespace
}  // namespace attndiff::device
