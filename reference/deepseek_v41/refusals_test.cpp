#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/contract/error.h"
#include "reference/deepseek_v41/model_test_support.h"

namespace attndiff::deepseek_v41 {
namespace {

using testing::HasSubstr;

/// The details of the Error(refused) that `call` throws.
template <typename Call>
ErrorDetails refusal_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::refused) << error.what();
    return error.details();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

ErrorDetails refused_call(const CallShape& call, const Shape& x) {
  return refusal_of([&] { check_call(small_config(), {.layer_id = 7}, call, x); });
}

TEST(CheckCall, RefusesTwoTokensInDecode) {
  const ErrorDetails d = refused_call({.tokens = 2, .start_pos = 5}, {2, 96});
  EXPECT_EQ(d.object, "layer 7");
  EXPECT_THAT(d.problem, HasSubstr("decode"));
  EXPECT_EQ(d.found, "2");
}

TEST(CheckCall, RefusesMoreThanMaxTokens) {
  const ErrorDetails d = refused_call(prefill(25), {25, 96});
  EXPECT_THAT(d.problem, HasSubstr("max_tokens"));
  EXPECT_EQ(d.expected, "24");
  EXPECT_EQ(d.found, "25");
  check_call(small_config(), {}, prefill(24), {24, 96});
}

TEST(CheckCall, RefusesToPassMaxSeq) {
  const ErrorDetails d = refused_call(decode(48), {1, 96});
  EXPECT_THAT(d.problem, HasSubstr("max_seq"));
  EXPECT_EQ(d.expected, "48");
  EXPECT_EQ(d.found, "49");
  check_call(small_config(), {}, decode(47), {1, 96});
}

TEST(CheckCall, RefusesNoTokensAndNegativePositions) {
  EXPECT_THAT(refused_call({.tokens = 0, .start_pos = 0}, {0, 96}).found, HasSubstr("tokens 0"));
  EXPECT_THAT(refused_call({.tokens = 1, .start_pos = -1}, {1, 96}).found, HasSubstr("start_pos -1"));
}

TEST(CheckCall, RefusesInputsOfAnotherShape) {
  EXPECT_EQ(refused_call(prefill(3), {3, 95}).expected, "[3, 96]");
  EXPECT_EQ(refused_call(prefill(3), {2, 96}).found, "[2, 96]");
}

TEST(Sequence, RefusesWhatTheCallCheckRefuses) {
  const TestModel model = random_model(small_config(), {{.layer_id = 0}});
  Session session(model);
  (void)session.run(0, prefill(6));
  EXPECT_THAT(refusal_of([&] { (void)session.run(0, {.tokens = 2, .start_pos = 6}); }).problem, HasSubstr("decode"));
}

TEST(Sequence, RefusesGapsAndRepetitions) {
  const TestModel model = random_model(small_config(), {{.layer_id = 4}});
  Session session(model);
  (void)session.run(0, prefill(6));
  for (const std::int64_t position : {5, 7}) {
    const ErrorDetails d = refusal_of([&] { (void)session.run(0, decode(position)); });
    EXPECT_THAT(d.object, HasSubstr("layer 4"));
    EXPECT_EQ(d.expected, "6");
    EXPECT_EQ(d.found, std::to_string(position));
  }
  (void)session.run(0, decode(6));
}

TEST(Sequence, RefusesToStartInTheMiddleWithoutState) {
  const TestModel model = random_model(small_config(), {{.layer_id = 4}});
  Session session(model);
  EXPECT_EQ(refusal_of([&] { (void)session.run(0, decode(6)); }).expected, "0");
}

constexpr LayerRole kReader{.layer_id = 9, .ratio = 2};
constexpr LayerRole kIndex{.layer_id = 9, .ratio = 2, .is_index_source = true};
constexpr LayerRole kCandidateUser{.layer_id = 9, .ratio = 2, .is_index_source = true, .uses_candidates = true};
constexpr std::int64_t kTokens = 6;  // three groups of two

/// Slot values that suit a prefill of kTokens.
SharedInputs suitable(const ModelConfig& c) {
  std::mt19937 engine(4);
  SharedInputs shared;
  shared.compress_kv = random_tensor(engine, DType::bf16, {3, c.head_dim}, 0, 1);
  shared.index_k = random_tensor(engine, DType::bf16, {3, c.index_head_dim}, 0, 1);
  shared.selection = Tensor(DType::i32, {kTokens, 3});
  shared.candidates = Tensor(DType::u8, {kTokens, 3});
  return shared;
}

/// What the prefill of a layer of that role is refused for once `spoil` has changed its slots.
ErrorDetails refused_slots(const LayerRole& role, const std::function<void(SharedInputs&)>& spoil) {
  const TestModel model = random_model(small_config(), {role});
  SharedInputs shared = suitable(model.config);
  Session sound(model);
  (void)sound.run(0, prefill(kTokens), &shared);
  spoil(shared);
  Session session(model);
  return refusal_of([&] { (void)session.run(0, prefill(kTokens), &shared); });
}

struct SpoiltSlot {
  const char* name;
  LayerRole role;
  std::function<void(SharedInputs&)> spoil;
  const char* object;
  const char* expected;
  const char* found;
};

void PrintTo(const SpoiltSlot& c, std::ostream* out) { *out << c.name; }

const std::vector<SpoiltSlot>& spoilt_slots() {
  static const std::vector<SpoiltSlot> kCases{
      {"no_latents", kReader, [](SharedInputs& s) { s.compress_kv = {}; }, "layer 9: slot compress_kv", "", ""},
      {"no_selection", kReader, [](SharedInputs& s) { s.selection = {}; }, "layer 9: slot selection", "", ""},
      {"no_keys", kIndex, [](SharedInputs& s) { s.index_k = {}; }, "layer 9: slot index_k", "", ""},
      {"no_candidates", kCandidateUser, [](SharedInputs& s) { s.candidates = {}; }, "layer 9: slot candidates", "", ""},
      {"few_latents", kReader,
       [](SharedInputs& s) {
         s.compress_kv = Tensor(DType::bf16, {2, 64});
       },
       "layer 9: slot compress_kv", "3", "2"},
      {"narrow_latents", kReader,
       [](SharedInputs& s) {
         s.compress_kv = Tensor(DType::bf16, {3, 32});
       },
       "layer 9: slot compress_kv", "64", "32"},
      {"few_keys", kIndex,
       [](SharedInputs& s) {
         s.index_k = Tensor(DType::bf16, {2, 32});
       },
       "layer 9: slot index_k", "3", "2"},
      {"wide_keys", kIndex,
       [](SharedInputs& s) {
         s.index_k = Tensor(DType::bf16, {3, 64});
       },
       "layer 9: slot index_k", "32", "64"},
      {"narrow_mask", kCandidateUser,
       [](SharedInputs& s) {
         s.candidates = Tensor(DType::u8, {6, 2});
       },
       "layer 9: slot candidates", "[6, 3]", "[6, 2]"},
      {"short_mask", kCandidateUser,
       [](SharedInputs& s) {
         s.candidates = Tensor(DType::u8, {1, 3});
       },
       "layer 9: slot candidates", "[6, 3]", "[1, 3]"},
      {"wide_selection", kReader,
       [](SharedInputs& s) {
         s.selection = Tensor(DType::i32, {6, 8});
       },
       "layer 9: slot selection", "[6, 3]", "[6, 8]"},
      {"short_selection", kReader,
       [](SharedInputs& s) {
         s.selection = Tensor(DType::i32, {5, 3});
       },
       "layer 9: slot selection", "[6, 3]", "[5, 3]"},
      {"pick_beyond_the_rows", kReader, [](SharedInputs& s) { s.selection.as<std::int32_t>()[4] = 3; },
       "layer 9: idx [1, 5]", "-1 to 8", "9"},
      {"negative_pick", kReader, [](SharedInputs& s) { s.selection.as<std::int32_t>()[0] = -2; }, "layer 9: idx [0, 4]",
       "-1 to 8", "-2"},
  };
  return kCases;
}

class SlotRefusal : public testing::TestWithParam<SpoiltSlot> {};

TEST_P(SlotRefusal, NamesLayerAndSlot) {
  const ErrorDetails d = refused_slots(GetParam().role, GetParam().spoil);
  EXPECT_EQ(d.object, GetParam().object);
  EXPECT_EQ(d.expected, GetParam().expected);
  EXPECT_EQ(d.found, GetParam().found);
}

INSTANTIATE_TEST_SUITE_P(Slots, SlotRefusal, testing::ValuesIn(spoilt_slots()),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(SlotRefusal, NeedsNoSlotBeforeTheFirstGroup) {
  const TestModel model = random_model(small_config(), {kReader});
  Session session(model);
  EXPECT_EQ(session.run(0, prefill(1)).compressed_count, 0);
}

InitialLayerState complete_state(const ModelConfig& c, std::int64_t groups) {
  return {.window = Tensor(DType::bf16, {c.window, c.head_dim}),
          .comp_kv_state = Tensor(DType::f32, {2, c.head_dim}),
          .comp_score_state = Tensor(DType::f32, {2, c.head_dim}),
          .compress_kv = Tensor(DType::bf16, {groups, c.head_dim}),
          .index_k = Tensor(DType::bf16, {groups, c.index_head_dim})};
}

struct SpoiltState {
  const char* name;
  std::function<void(InitialLayerState&)> spoil;
  const char* part;
};

void PrintTo(const SpoiltState& c, std::ostream* out) { *out << c.name; }

class ResumeRefusal : public testing::TestWithParam<SpoiltState> {};

TEST_P(ResumeRefusal, NamesLayerAndPart) {
  const TestModel model =
      random_model(small_config(), {{.layer_id = 9, .ratio = 2, .is_kv_source = true, .is_index_source = true}});
  InitialLayerState state = complete_state(model.config, 3);
  Session(model).stack().resume(7, std::vector{state}, {}, {});
  GetParam().spoil(state);
  Session session(model);
  const ErrorDetails d = refusal_of([&] { session.stack().resume(7, std::vector{state}, {}, {}); });
  EXPECT_EQ(d.object, std::string("layer 9: initial state ") + GetParam().part);
}

INSTANTIATE_TEST_SUITE_P(
    Parts, ResumeRefusal,
    testing::Values(SpoiltState{"no_window", [](InitialLayerState& s) { s.window = {}; }, "window"},
                    SpoiltState{"short_window",
                                [](InitialLayerState& s) {
                                  s.window = Tensor(DType::bf16, {3, 64});
                                },
                                "window"},
                    SpoiltState{"no_k", [](InitialLayerState& s) { s.comp_kv_state = {}; }, "comp_kv_state"},
                    SpoiltState{"no_g", [](InitialLayerState& s) { s.comp_score_state = {}; }, "comp_score_state"},
                    SpoiltState{"k_type",
                                [](InitialLayerState& s) {
                                  s.comp_kv_state = Tensor(DType::bf16, {2, 64});
                                },
                                "comp_kv_state"},
                    SpoiltState{"no_latents", [](InitialLayerState& s) { s.compress_kv = {}; }, "compress_kv"},
                    SpoiltState{"few_latents",
                                [](InitialLayerState& s) {
                                  s.compress_kv = Tensor(DType::bf16, {2, 64});
                                },
                                "compress_kv"},
                    SpoiltState{"no_keys", [](InitialLayerState& s) { s.index_k = {}; }, "index_k"},
                    SpoiltState{"many_keys",
                                [](InitialLayerState& s) {
                                  s.index_k = Tensor(DType::bf16, {4, 32});
                                },
                                "index_k"}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(ResumeRefusal, NeedsNoPartialGroupBetweenGroups) {
  const TestModel model =
      random_model(small_config(), {{.layer_id = 9, .ratio = 2, .is_kv_source = true, .is_index_source = true}});
  InitialLayerState state = complete_state(model.config, 3);
  state.comp_kv_state = {};
  state.comp_score_state = {};
  Session session(model);
  session.stack().resume(6, std::vector{state}, {}, {});
  (void)session.run(0, decode(6));
}

}  // namespace
}  // namespace attndiff::deepseek_v41
