#include "reference/deepseek_v41/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace attndiff::deepseek_v41 {
namespace {

using testing::ElementsAreArray;

/// Every width differs, so that no shape passes for another.
ModelConfig config() {
  ModelConfig c;
  c.dim = 160;
  c.n_heads = 6;
  c.head_dim = 96;
  c.q_rank = 64;
  c.o_rank = 40;
  c.groups = 2;
  c.window = 8;
  c.index_heads = 3;
  c.index_head_dim = 128;
  c.index_topk = 5;
  return c;
}

constexpr LayerRole kWindowOnly{.ratio = 0};
constexpr LayerRole kSource2{.ratio = 2, .is_kv_source = true, .is_index_source = true};
constexpr LayerRole kReader2{.ratio = 2};
constexpr LayerRole kSource1{.ratio = 1, .is_kv_source = true, .is_index_source = true, .is_candidate_source = true};
constexpr LayerRole kIndex1{.ratio = 1, .is_index_source = true, .uses_candidates = true};
constexpr LayerRole kSource3{.ratio = 3, .is_kv_source = true, .is_index_source = true};
constexpr LayerRole kKvOnly2{.ratio = 2, .is_kv_source = true};

using Shapes = std::map<std::string, std::string>;

Shapes shapes_of(const LayerRole& role, const CallShape& call) {
  Shapes shapes;
  const ModelConfig c = config();
  for (const StageInfo& stage : family().stages) {
    if (const auto shape = stage.shape(c, role, call)) {
      shapes.emplace(stage.name, shape->text());
    }
  }
  return shapes;
}

/// What every layer has, for a call of `t` tokens whose attention has these rows and columns.
Shapes common(int t, int rows, int columns) {
  const std::string n = "[" + std::to_string(t) + ", ";
  return {{"qr", n + "64]"},
          {"q", n + "6, 96]"},
          {"kv_pre", n + "96]"},
          {"kv", n + "96]"},
          {"ring", "[8, 96]"},
          {"rows", "[" + std::to_string(rows) + ", 96]"},
          {"idx", n + std::to_string(columns) + "]"},
          {"lse", n + "6]"},
          {"o", n + "6, 96]"},
          {"og", n + "80]"},
          {"out", n + "160]"}};
}

Shapes with(Shapes shapes, const Shapes& more) {
  shapes.insert(more.begin(), more.end());
  return shapes;
}

TEST(StageTable, IsInTheSpecificationsOrder) {
  const std::vector<std::string> expected{
      "qr",          "q",           "kv_pre",  "kv",      "ring",        "comp_state", "latent",    "index_k_pre",
      "index_k",     "index_q_pre", "index_q", "index_w", "index_score", "candidates", "selection", "compress_pre",
      "compress_kv", "rows",        "idx",     "lse",     "o",           "og",         "out"};
  std::vector<std::string> names;
  for (const StageInfo& stage : family().stages) {
    names.emplace_back(stage.name);
  }
  EXPECT_THAT(names, ElementsAreArray(expected));
}

TEST(StageTable, IdsArePositionsAndInputsComeBefore) {
  ASSERT_EQ(family().stages.size(), static_cast<std::size_t>(kStageCount));
  for (std::size_t i = 0; i < family().stages.size(); ++i) {
    const StageInfo& stage = family().stages[i];
    EXPECT_EQ(stage.id, static_cast<int>(i));
    ASSERT_NE(stage.shape, nullptr);
    for (const int input : stage.inputs) {
      EXPECT_GE(input, 0) << stage.name;
      EXPECT_LT(input, stage.id) << stage.name;
    }
  }
}

TEST(StageTable, FindsStagesByName) {
  ASSERT_NE(family().find("index_score"), nullptr);
  EXPECT_EQ(family().find("index_score")->id, kIndexScore);
  EXPECT_EQ(family().find("out")->id, kOut);
  EXPECT_EQ(family().find("outs"), nullptr);
  EXPECT_EQ(family().find(""), nullptr);
}

TEST(StageTable, KindsAndTypesFitTogether) {
  for (const StageInfo& stage : family().stages) {
    switch (stage.kind) {
      case StageKind::index:
        EXPECT_EQ(stage.dtype, DType::i32) << stage.name;
        break;
      case StageKind::mask:
        EXPECT_EQ(stage.dtype, DType::u8) << stage.name;
        break;
      case StageKind::real:
      case StageKind::code:
      case StageKind::state:
        EXPECT_TRUE(stage.dtype == DType::bf16 || stage.dtype == DType::f32) << stage.name;
        break;
    }
    const bool in_float32 = stage.rounding == Rounding::f32;
    EXPECT_EQ(stage.dtype == DType::f32, in_float32) << stage.name;
  }
}

TEST(StageShapes, OfAWindowOnlyLayer) {
  EXPECT_EQ(shapes_of(kWindowOnly, {.tokens = 21, .start_pos = 0}), common(21, 21, 8));
  EXPECT_EQ(shapes_of(kWindowOnly, {.tokens = 3, .start_pos = 0}), common(3, 3, 3));
  EXPECT_EQ(shapes_of(kWindowOnly, {.tokens = 1, .start_pos = 2}), common(1, 8, 8));
}

TEST(StageShapes, OfASourceInPrefill) {
  // 21 tokens: 10 groups of 2, of which 5 are selected.
  EXPECT_EQ(shapes_of(kSource2, {.tokens = 21, .start_pos = 0}),
            with(common(21, 31, 13), {{"comp_state", "[2, 2, 96]"},
                                      {"latent", "[10, 96]"},
                                      {"index_k_pre", "[10, 128]"},
                                      {"index_k", "[10, 128]"},
                                      {"index_q_pre", "[21, 3, 128]"},
                                      {"index_q", "[21, 3, 128]"},
                                      {"index_w", "[21, 3]"},
                                      {"index_score", "[21, 10]"},
                                      {"selection", "[21, 5]"},
                                      {"compress_pre", "[10, 96]"},
                                      {"compress_kv", "[10, 96]"}}));
}

TEST(StageShapes, OfADecodeThatCompletesAGroup) {
  EXPECT_EQ(shapes_of(kSource3, {.tokens = 1, .start_pos = 11}),
            with(common(1, 12, 12), {{"comp_state", "[2, 3, 96]"},
                                     {"latent", "[1, 96]"},
                                     {"index_k_pre", "[1, 128]"},
                                     {"index_k", "[1, 128]"},
                                     {"index_q_pre", "[1, 3, 128]"},
                                     {"index_q", "[1, 3, 128]"},
                                     {"index_w", "[1, 3]"},
                                     {"index_score", "[1, 4]"},
                                     {"selection", "[1, 4]"},
                                     {"compress_pre", "[1, 96]"},
                                     {"compress_kv", "[1, 96]"}}));
}

TEST(StageShapes, OfADecodeThatCompletesNone) {
  EXPECT_EQ(shapes_of(kSource3, {.tokens = 1, .start_pos = 12}),
            with(common(1, 12, 12), {{"comp_state", "[2, 3, 96]"},
                                     {"index_q_pre", "[1, 3, 128]"},
                                     {"index_q", "[1, 3, 128]"},
                                     {"index_w", "[1, 3]"},
                                     {"index_score", "[1, 4]"},
                                     {"selection", "[1, 4]"}}));
}

TEST(StageShapes, OfAPrefillShorterThanAGroup) {
  EXPECT_EQ(shapes_of(kSource3, {.tokens = 2, .start_pos = 0}),
            with(common(2, 2, 2), {{"comp_state", "[2, 3, 96]"}, {"selection", "[2, 0]"}}));
  EXPECT_EQ(shapes_of(kReader2, {.tokens = 1, .start_pos = 0}), common(1, 1, 1));
}

TEST(StageShapes, OfTheCandidateSource) {
  const Shapes shapes = shapes_of(kSource1, {.tokens = 4, .start_pos = 0});
  EXPECT_EQ(shapes.at("candidates"), "[4, 4]");
  EXPECT_EQ(shapes.at("index_score"), "[4, 4]");
  EXPECT_EQ(shapes.at("latent"), "[4, 96]");
  EXPECT_EQ(shapes.count("comp_state"), 0U) << "a group of one token is never partial";
}

TEST(StageShapes, OfAnIndexSourceWithoutLatents) {
  EXPECT_EQ(shapes_of(kIndex1, {.tokens = 1, .start_pos = 30}), with(common(1, 39, 13), {{"index_q_pre", "[1, 3, 128]"},
                                                                                         {"index_q", "[1, 3, 128]"},
                                                                                         {"index_w", "[1, 3]"},
                                                                                         {"index_score", "[1, 31]"},
                                                                                         {"selection", "[1, 5]"}}));
}

TEST(StageShapes, OfAReader) {
  EXPECT_EQ(shapes_of(kReader2, {.tokens = 21, .start_pos = 0}), common(21, 31, 13));
  EXPECT_EQ(shapes_of(kReader2, {.tokens = 1, .start_pos = 6}), common(1, 11, 11));
}

TEST(StageShapes, OfAKvSourceThatDoesNotIndex) {
  EXPECT_EQ(shapes_of(kKvOnly2, {.tokens = 1, .start_pos = 7}), with(common(1, 12, 12), {{"comp_state", "[2, 2, 96]"},
                                                                                         {"latent", "[1, 96]"},
                                                                                         {"compress_pre", "[1, 96]"},
                                                                                         {"compress_kv", "[1, 96]"}}));
}

TEST(Counts, OfGroupsAddUpToTheLength) {
  for (const std::int64_t ratio : {1, 2, 3, 4}) {
    const LayerRole role{.ratio = ratio, .is_kv_source = true};
    for (std::int64_t prefill = 1; prefill < 10; ++prefill) {
      std::int64_t groups = groups_completed(role, {.tokens = prefill, .start_pos = 0});
      for (std::int64_t position = prefill; position < 30; ++position) {
        groups += groups_completed(role, {.tokens = 1, .start_pos = position});
        ASSERT_EQ(groups, (position + 1) / ratio);
        ASSERT_EQ(compressed_length(role, {.tokens = 1, .start_pos = position}), groups);
      }
    }
  }
}

using Specs = std::map<std::string, std::string>;

Specs weights_of(const LayerRole& role) {
  Specs specs;
  for (const WeightSpec& spec : family().weights(config(), role)) {
    specs.emplace(spec.name,
                  std::string(name_of(spec.dtype)) + " " + spec.shape.text() + (spec.may_be_e4m3 ? " or e4m3" : ""));
  }
  return specs;
}

Specs plus(Specs specs, const Specs& more) {
  specs.insert(more.begin(), more.end());
  return specs;
}

const Specs& common_weights() {
  static const Specs kSpecs{{"sink", "float32 [6]"},
                            {"wq_a", "bfloat16 [64, 160] or e4m3"},
                            {"q_norm", "float32 [64]"},
                            {"wq_b", "bfloat16 [576, 64] or e4m3"},
                            {"wkv", "bfloat16 [96, 160] or e4m3"},
                            {"kv_norm", "float32 [96]"},
                            {"wo_a", "bfloat16 [80, 288]"},
                            {"wo_b", "bfloat16 [160, 80] or e4m3"}};
  return kSpecs;
}

TEST(WeightSpecs, OfEveryKind) {
  const Specs index{{"idx_wq_b", "bfloat16 [384, 64] or e4m3"}, {"idx_weights_proj", "bfloat16 [3, 160]"}};
  const Specs keys{{"idx_wk", "bfloat16 [128, 96]"}, {"idx_k_norm", "float32 [128]"}};
  const Specs groups{
      {"comp_wkv", "float32 [96, 160]"}, {"comp_wgate", "float32 [96, 160]"}, {"comp_norm", "float32 [96]"}};
  const Specs single{{"comp_wkv", "bfloat16 [96, 160]"}, {"comp_norm", "float32 [96]"}};
  EXPECT_EQ(weights_of(kWindowOnly), common_weights());
  EXPECT_EQ(weights_of(kReader2), common_weights());
  EXPECT_EQ(weights_of(kIndex1), plus(common_weights(), index));
  EXPECT_EQ(weights_of(kKvOnly2), plus(common_weights(), groups));
  EXPECT_EQ(weights_of(kSource2), plus(plus(plus(common_weights(), index), keys), groups));
  EXPECT_EQ(weights_of(kSource1), plus(plus(plus(common_weights(), index), keys), single));
}

TEST(StageTerms, CountTheProductsOfTheLongestSum) {
  const CallShape prefill{.tokens = 12, .start_pos = 0};
  const std::map<std::string, std::int64_t> due{
      {"qr", 160},         {"q", 64},        {"kv_pre", 160},     {"comp_state", 160},  {"latent", 160},
      {"index_k_pre", 96}, {"index_w", 160}, {"index_q_pre", 64}, {"index_score", 128}, {"lse", 96},
      {"o", 96},           {"og", 288},      {"out", 80}};
  for (const StageInfo& stage : family().stages) {
    const auto found = due.find(std::string(stage.name));
    EXPECT_EQ(family().terms(stage.id, config(), kSource2, prefill), found == due.end() ? 0 : found->second)
        << stage.name;
  }
}

TEST(StageNames, OfKindsAndRoundings) {
  EXPECT_STREQ(name_of(StageKind::real), "float");
  EXPECT_STREQ(name_of(StageKind::code), "code");
  EXPECT_STREQ(name_of(StageKind::index), "index");
  EXPECT_STREQ(name_of(StageKind::mask), "mask");
  EXPECT_STREQ(name_of(StageKind::state), "state");
  EXPECT_STREQ(name_of(Rounding::fp8), "fp8");
  EXPECT_STREQ(name_of(Rounding::fp4_e8m0), "fp4_e8m0");
  EXPECT_STREQ(name_of(Rounding::fp4_e4m3), "fp4_e4m3");
}

}  // namespace
}  // namespace attndiff::deepseek_v41
