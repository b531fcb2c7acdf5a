#include "harness/recipe/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "harness/recipe/e4m3_weight.h"
#include "harness/recipe/presets.h"
#include "reference/contract/families.h"
#include "reference/formats.h"

namespace attndiff {
namespace {

struct Moments {
  double mean = 0;
  double rms = 0;
  double largest = 0;
};

Moments moments_of(const Tensor& t) {
  const Tensor exact = to_f32(t);
  Moments m;
  for (const float v : exact.as<float>()) {
    m.mean += static_cast<double>(v) / static_cast<double>(t.count());
    m.rms += static_cast<double>(v) * static_cast<double>(v) / static_cast<double>(t.count());
    m.largest = std::max(m.largest, static_cast<double>(std::fabs(v)));
  }
  m.rms = std::sqrt(m.rms);
  return m;
}

template <typename Visit>
void for_each_weight(const Recipe& recipe, Visit visit) {
  for (const RecipeLayer& layer : recipe.layers) {
    for (const WeightSpec& spec : family_named(recipe.config.family).weights(recipe.config, layer.role)) {
      visit(layer.role, spec);
    }
  }
}

TEST(Values, MatricesKeepTheVarianceOfTheirInputs) {
  const Recipe recipe = preset("micro");
  for_each_weight(recipe, [&](const LayerRole& role, const WeightSpec& spec) {
    if (spec.shape.rank() != 2) {
      return;
    }
    const Tensor values = weight_rule(recipe, role, spec).materialise();
    EXPECT_EQ(values.dtype(), spec.dtype);
    EXPECT_EQ(values.shape(), spec.shape);
    const Moments m = moments_of(values);
    const double due = 1 / std::sqrt(static_cast<double>(spec.shape[1]));
    // A uniform sample's rms has the relative deviation sqrt(0.2 / n), its mean rms / sqrt(n): five of them.
    const auto n = static_cast<double>(values.count());
    EXPECT_NEAR(m.rms, due, 5 * due * std::sqrt(0.2 / n)) << spec.name;
    EXPECT_NEAR(m.mean, 0, 5 * due / std::sqrt(n)) << spec.name;
    EXPECT_LE(m.largest, due * std::sqrt(3.0) * (1 + 0x1p-8)) << spec.name;
  });
}

TEST(Values, NormsLieAboutOneAndSinksAboutZero) {
  const Recipe recipe = preset("micro");
  for_each_weight(recipe, [&](const LayerRole& role, const WeightSpec& spec) {
    if (spec.shape.rank() != 1) {
      return;
    }
    const Tensor values = weight_rule(recipe, role, spec).materialise();
    const auto [low, high] = std::minmax_element(values.as<float>().begin(), values.as<float>().end());
    const bool sink = std::string(spec.name) == "sink";
    EXPECT_GE(*low, sink ? -2.0F : 0.8F) << spec.name;
    EXPECT_LE(*high, sink ? 2.0F : 1.2F) << spec.name;
    EXPECT_GT(*high - *low, sink ? 0.5F : 0.3F) << spec.name;
  });
}

TEST(Values, InputsHaveUnitVariance) {
  const Recipe recipe = preset("mid");
  const Tensor x = input_rule(recipe, recipe.layers[0].role, recipe.steps[0].shape).materialise();
  EXPECT_EQ(x.dtype(), DType::bf16);
  EXPECT_EQ(x.shape(), (Shape{150, 256}));
  EXPECT_NEAR(moments_of(x).rms, 1, 0.02);
}

TEST(Values, GainScalesOneWeight) {
  Recipe recipe = preset("tiny");
  const WeightSpec spec{.name = "wq_b", .shape = {128, 32}};
  const double plain = weight_rule(recipe, recipe.layers[0].role, spec).scale;
  recipe.values.gain["wq_b"] = 3;
  EXPECT_DOUBLE_EQ(weight_rule(recipe, recipe.layers[0].role, spec).scale, 3 * plain);
}

TEST(Values, EveryTensorHasItsOwnSeed) {
  const Recipe recipe = preset("micro");
  std::set<std::uint64_t> seeds;
  std::size_t count = 0;
  for_each_weight(recipe, [&](const LayerRole& role, const WeightSpec& spec) {
    seeds.insert(weight_rule(recipe, role, spec).seed);
    ++count;
  });
  for (const RecipeLayer& layer : recipe.layers) {
    for (const FixtureStep& step : recipe.steps) {
      seeds.insert(input_rule(recipe, layer.role, step.shape).seed);
      ++count;
    }
  }
  EXPECT_EQ(seeds.size(), count);
  EXPECT_NE(tensor_seed(1, "/a"), tensor_seed(2, "/a"));
}

TEST(Values, AddingALayerLeavesTheOthersSeeds) {
  const Recipe before = preset("micro");
  Recipe after = before;
  after.layers.insert(after.layers.begin() + 1, RecipeLayer{.role = {.layer_id = 40}});
  for_each_weight(before, [&](const LayerRole& role, const WeightSpec& spec) {
    EXPECT_EQ(weight_rule(before, role, spec).seed, weight_rule(after, role, spec).seed);
  });
  EXPECT_EQ(input_rule(before, before.layers[2].role, before.steps[3].shape).seed,
            input_rule(after, after.layers[3].role, after.steps[3].shape).seed);
}

TEST(Values, SeedsAreThoseOfTheDocumentedMix) {
  // FNV-1a and the finaliser computed apart from this code, so that files made by other versions stay comparable.
  EXPECT_EQ(tensor_seed(1, "/layers/0/weights/wq_a"), 0xd422ca4c1fbc8c48U);
  EXPECT_EQ(tensor_seed(0, ""), 0x69dd497cadf91c08U);
}

TEST(Values, MeansMoveInputsWeightsAndSinks) {
  Recipe recipe = preset("tiny");
  const LayerRole& role = recipe.layers[0].role;
  const WeightSpec matrix{.name = "wkv", .shape = {32, 64}};
  const WeightSpec sink{.name = "sink", .shape = {4}, .dtype = DType::f32};
  recipe.values.mean["wkv"] = 4;
  recipe.values.sink_mean = -40;
  recipe.values.input_mean = 3;
  EXPECT_EQ(weight_rule(recipe, role, matrix).offset, 4.0 / 64);
  EXPECT_EQ(weight_rule(recipe, role, sink).offset, -40);
  EXPECT_EQ(input_rule(recipe, role, recipe.steps[0].shape).offset, 3);
}

TEST(Values, TheFirstTokenRuleThatHoldsCounts) {
  Recipe recipe = preset("tiny");
  const LayerRole& role = recipe.layers[0].role;
  EXPECT_FALSE(token_inputs(recipe, role, 2).has_value());
  recipe.values.tokens = {{.every = 4, .at = 2, .kind = InputKind::constant, .size = 0.75},
                          {.every = 2, .at = 0, .kind = InputKind::heavy_tailed, .size = 0.5},
                          {.every = 3, .at = 1, .kind = InputKind::uniform, .size = 0x1p-128}};
  EXPECT_FALSE(token_inputs(recipe, role, 3).has_value());
  const Tensor constant = to_f32(token_inputs(recipe, role, 6).value());
  for (const float v : constant.as<float>()) {
    EXPECT_EQ(v, constant.as<float>()[0]);
    EXPECT_EQ(std::fabs(v), 0.75F);
  }
  const Moments tail = moments_of(token_inputs(recipe, role, 8).value());
  EXPECT_GT(tail.largest, 8 * 0.5);
  EXPECT_LE(tail.largest, 1024 * 0.5);
  const Moments tiny = moments_of(token_inputs(recipe, role, 1).value());
  EXPECT_GT(tiny.largest, 0);
  EXPECT_LT(tiny.largest, 0x1p-126);
}

TEST(E4m3Weight, NeighbouringBlocksHaveOtherScalesAlongBothAxes) {
  Tensor ones(DType::f32, {96, 128});
  std::fill(ones.as<float>().begin(), ones.as<float>().end(), 1.0F);
  vary_blocks(ones);
  const Weight weight = quantise_e4m3(ones);
  const auto scales = weight.scales.as<std::uint8_t>();
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      EXPECT_TRUE(j == 0 || scales[4 * i + j] != scales[4 * i + j - 1]) << i << ", " << j;
      EXPECT_TRUE(i == 0 || scales[4 * i + j] != scales[4 * (i - 1) + j]) << i << ", " << j;
    }
  }
  EXPECT_NE(scales[1], scales[4]);
}

TEST(E4m3Weight, DequantisesWithinHalfAStepAndScalesByBlock) {
  const Recipe recipe = preset("micro-e4m3");
  const WeightSpec spec{.name = "wq_a", .shape = {40, 70}};  // blocks at both edges are cut
  ProceduralTensor rule = weight_rule(recipe, recipe.layers[0].role, spec);
  rule.dtype = DType::f32;
  Tensor values = rule.materialise();
  values.as<float>()[0] = 100.0F;  // only the first block takes a large scale
  const Weight weight = quantise_e4m3(values);
  ASSERT_EQ(weight.scales.shape(), (Shape{2, 3}));
  EXPECT_TRUE(weight.quantised());
  const auto scales = weight.scales.as<std::uint8_t>();
  EXPECT_EQ(reference::e8m0_decode(scales[0]), 0.25F);  // 100 / 448 = 0.223
  EXPECT_LT(reference::e8m0_decode(scales[1]), 0.001F);
  const auto from = values.as<float>();
  std::set<std::uint8_t> codes;
  for (std::int64_t i = 0; i < values.count(); ++i) {
    const std::int64_t block = i / 70 / 32 * 3 + i % 70 / 32;
    const float scale = reference::e8m0_decode(scales[static_cast<std::size_t>(block)]);
    const auto code = std::to_integer<std::uint8_t>(weight.values.raw()[i]);
    codes.insert(code);
    const float v = from[static_cast<std::size_t>(i)];
    // e4m3 keeps 4 significant bits; below the smallest normal, 2^-6, its step is 2^-9.
    const float half_step = std::max(std::fabs(v) * 0x1p-4F, scale * 0x1p-10F);
    EXPECT_LE(std::fabs(reference::e4m3_decode(code) * scale - v), half_step) << i;
  }
  EXPECT_GT(codes.size(), 50U);
}

}  // namespace
}  // namespace attndiff
