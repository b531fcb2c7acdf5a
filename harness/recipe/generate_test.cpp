#include "harness/recipe/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <variant>

#include "harness/fixture/reader.h"
#include "harness/recipe/initial_state.h"
#include "harness/recipe/presets.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"
#include "reference/quantize.h"

namespace attndiff {
namespace {

class Generate : public testing::Test {
 protected:
  /// A path of this test's own: tests run at the same time.
  [[nodiscard]] std::string path() const {
    return testing::TempDir() + "generate-" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".h5";
  }
  [[nodiscard]] FixtureReader generated(const Recipe& recipe) const {
    generate(recipe, path());
    return FixtureReader(path());
  }
  void TearDown() override { std::filesystem::remove(path()); }
};

TEST_F(Generate, TheFixtureSaysWhatTheRecipeSays) {
  const Recipe recipe = preset("micro-own");
  const FixtureReader fixture = generated(recipe);
  EXPECT_EQ(fixture.note(), recipe.note);
  EXPECT_EQ(fixture.config().index_keys, IndexKeyRule::own);
  for (const ConfigInt& entry : config_ints()) {
    EXPECT_EQ(fixture.config().*entry.member, recipe.config.*entry.member) << entry.name;
  }
  ASSERT_EQ(fixture.layers().size(), 6U);
  EXPECT_TRUE(fixture.layers()[3].is_candidate_source);
  ASSERT_EQ(fixture.steps().size(), 20U);
  EXPECT_EQ(fixture.steps()[0].shape.tokens, 21);
  EXPECT_EQ(fixture.steps()[19].shape.start_pos, 39);
  EXPECT_FALSE(fixture.resumes());
  EXPECT_TRUE(fixture.recorded_stages(0, 0).empty());
  EXPECT_EQ(fixture.weights(1).at("comp_wgate").values.dtype(), DType::f32);
  EXPECT_EQ(fixture.input(0, 5).shape(), (Shape{21, 160}));
}

TEST_F(Generate, E4m3WeightsComeBackQuantised) {
  const FixtureReader fixture = generated(preset("micro-e4m3"));
  const LayerWeights weights = fixture.weights(1);
  for (const char* name : {"wq_a", "wq_b", "wkv", "wo_b", "idx_wq_b"}) {
    EXPECT_TRUE(weights.at(name).quantised()) << name;
  }
  for (const char* name : {"wo_a", "comp_wkv", "idx_wk"}) {
    EXPECT_FALSE(weights.at(name).quantised()) << name;
  }
}

TEST_F(Generate, AnOddResumeDeclaresThePartialGroup) {
  const Recipe recipe = preset("tiny-resume");  // position 13 leaves one member of two
  const FixtureReader fixture = generated(recipe);
  ASSERT_TRUE(fixture.resumes());
  const InitialLayerState state = fixture.initial_state(1);
  ASSERT_EQ(state.comp_kv_state.shape(), (Shape{2, 32}));
  const auto k = state.comp_kv_state.as<float>();
  const auto g = state.comp_score_state.as<float>();
  const auto nonzero = [](float v) { return v != 0 && std::isfinite(v); };
  EXPECT_TRUE(std::all_of(k.begin(), k.begin() + 32, nonzero));
  EXPECT_TRUE(std::all_of(g.begin(), g.begin() + 32, nonzero));
  EXPECT_TRUE(std::all_of(k.begin() + 32, k.end(), [](float v) { return v == 0; }));
  EXPECT_TRUE(std::all_of(g.begin() + 32, g.end(), [](float v) { return std::isinf(v) && v < 0; }));
  EXPECT_FALSE(std::equal(k.begin(), k.begin() + 32, g.begin()));
  EXPECT_EQ(state.compress_kv.shape(), (Shape{6, 32}));
  EXPECT_EQ(state.index_k.shape(), (Shape{6, 32}));
  EXPECT_EQ(fixture.initial_state(3).compress_kv.shape(), (Shape{13, 32}));
}

TEST_F(Generate, DeclaredRowsLieOnTheirGrids) {
  const FixtureReader fixture = generated(preset("micro-4095"));
  const InitialLayerState state = fixture.initial_state(1);
  const auto check = [](const Tensor& rows, void (*round_trip)(std::span<float>) noexcept, const char* name) {
    const Tensor values = to_f32(rows);
    Tensor again = values;
    const auto width = static_cast<std::size_t>(rows.shape()[1]);
    for (std::size_t row = 0; row < 64 && row < static_cast<std::size_t>(rows.shape()[0]); ++row) {
      round_trip(again.as<float>().subspan(row * width, width));
    }
    EXPECT_TRUE(std::equal(again.as<float>().begin(), again.as<float>().end(), values.as<float>().begin())) << name;
  };
  check(state.window, reference::fp8_round_trip, "window");
  check(state.compress_kv, reference::fp4_e4m3_round_trip, "compress_kv");
  check(state.index_k, reference::fp4_e8m0_round_trip, "index_k");
  EXPECT_EQ(state.compress_kv.shape()[0], 2047);
}

TEST_F(Generate, WindowSlotsNeverWrittenAreZero) {
  Recipe recipe = preset("tiny-resume");
  recipe.steps = {{.shape = {.tokens = 1, .start_pos = 5}}};
  const FixtureReader fixture = generated(recipe);
  const Tensor window = to_f32(fixture.initial_state(0).window);
  const auto values = window.as<float>();
  const auto split = values.begin() + std::ptrdiff_t{5} * 32;
  EXPECT_TRUE(std::any_of(split - 32, split, [](float v) { return v != 0; }));
  EXPECT_TRUE(std::all_of(split, values.end(), [](float v) { return v == 0; }));
}

TEST_F(Generate, RepeatedTokensHaveEqualInputs) {
  const FixtureReader fixture = generated(preset("tiny-ties"));
  const Tensor x = fixture.input(0, 2);
  const std::size_t row = 64 * sizeof(Bf16);
  EXPECT_EQ(std::memcmp(x.raw() + row, x.raw() + 6 * row, row), 0);
  EXPECT_NE(std::memcmp(x.raw(), x.raw() + row, row), 0);
  const Tensor decoded = fixture.input(3, 2);  // position 42
  EXPECT_EQ(std::memcmp(decoded.raw(), x.raw() + 2 * row, row), 0);
}

TEST(DeclaredOwners, AreWhatHistoryLeaves) {
  Recipe recipe = preset("micro-ratio4");  // kv sources: layer 0 of ratio 4, layer 2 of ratio 3
  const auto keys_owner_at = [&](std::int64_t position) {
    recipe.steps = {{.shape = {.tokens = 1, .start_pos = position}}};
    return declared_owners(recipe).index_k;
  };
  EXPECT_EQ(keys_owner_at(8), 0);              // groups ended at 8 and 6
  EXPECT_EQ(keys_owner_at(9), std::nullopt);   // at 8 and 9: layer 2, the default
  EXPECT_EQ(keys_owner_at(12), std::nullopt);  // both at 12: the later layer
  EXPECT_EQ(declared_owners(recipe).compress_kv, std::nullopt);
  recipe.config.index_keys = IndexKeyRule::own;
  EXPECT_EQ(keys_owner_at(8), std::nullopt);  // layer 2 publishes at every call
  recipe.owners = {.compress_kv = 0, .index_k = 0};
  EXPECT_EQ(keys_owner_at(8), 0);
  EXPECT_EQ(declared_owners(recipe).compress_kv, 0);
}

TEST_F(Generate, DeclaredOwnersReachTheFixture) {
  Recipe recipe = preset("micro-ratio4");
  recipe.steps = {{.shape = {.tokens = 1, .start_pos = 8}}};
  const FixtureReader fixture = generated(recipe);
  EXPECT_EQ(fixture.index_k_owner(), 0);
  EXPECT_EQ(fixture.compress_kv_owner(), std::nullopt);
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

/// With RuleForm::values a fixture holds what the rules make, bit for bit, and no rule.
TEST_F(Generate, RulesCanBeWrittenAsTheirValues) {
  const Recipe recipe = preset("micro-4095");
  const FixtureReader by_rule = generated(recipe);
  const std::string path_of_values = path() + ".values";
  generate(recipe, path_of_values, RuleForm::values);
  const FixtureReader values(path_of_values);
  std::size_t rules = 0;
  for (std::size_t layer = 0; layer < values.layers().size(); ++layer) {
    const LayerWeights a = by_rule.weights(layer);
    const LayerWeights b = values.weights(layer);
    for (const WeightSpec& spec : family_named(recipe.config.family).weights(recipe.config, values.layers()[layer])) {
      rules += std::holds_alternative<ProceduralTensor>(by_rule.stored_weight(layer, spec.name)) ? 1 : 0;
      EXPECT_FALSE(std::holds_alternative<ProceduralTensor>(values.stored_weight(layer, spec.name))) << spec.name;
      EXPECT_TRUE(equal(a.at(spec.name).values, b.at(spec.name).values)) << spec.name;
    }
    for (const auto& [name, value] : values.stored_initial_state(layer)) {
      EXPECT_FALSE(std::holds_alternative<ProceduralTensor>(value)) << name;
    }
    for (std::size_t step = 0; step < values.steps().size(); ++step) {
      EXPECT_FALSE(std::holds_alternative<ProceduralTensor>(values.stored_input(step, layer)));
      EXPECT_TRUE(equal(by_rule.input(step, layer), values.input(step, layer)));
    }
  }
  EXPECT_GT(rules, 10U);
  std::filesystem::remove(path_of_values);
}

TEST(GenerateErrors, AFolderThatDoesNotExistIsAnOutputError) {
  try {
    generate(preset("tiny"), testing::TempDir() + "no-such-folder/f.h5");
    FAIL() << "wrote into a folder that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::output);
  }
}

}  // namespace
}  // namespace attndiff
