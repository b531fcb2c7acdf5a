#include "harness/recipe/random_recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "harness/recipe/contradictions.h"
#include "harness/recipe/generate.h"

namespace attndiff {
namespace {

constexpr std::uint64_t kMany = 2000;

TEST(RandomRecipe, IsSound) {
  for (std::uint64_t seed = 0; seed < kMany; ++seed) {
    const std::vector<std::string> found = contradictions(random_recipe(seed).recipe);
    ASSERT_TRUE(found.empty()) << "seed " << seed << ": " << found.front();
  }
}

TEST(RandomRecipe, DrawsEveryKindOfLayerAndCall) {
  std::set<std::string> kinds;
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kMany; ++seed) {
    const RandomRecipe random = random_recipe(seed);
    const Recipe& recipe = random.recipe;
    std::int64_t largest_ratio = 0;
    for (const RecipeLayer& layer : recipe.layers) {
      kinds.insert(kind_of(layer.role));
      largest_ratio = std::max(largest_ratio, layer.role.ratio);
      seen.insert(layer.weights == WeightFormat::e4m3 ? "e4m3" : "bf16");
    }
    const auto note = [&](bool is, const char* what) {
      if (is) {
        seen.insert(what);
      }
    };
    const CallShape& first = recipe.steps.front().shape;
    note(random.ordinary, "ordinary");
    note(!random.ordinary, "extreme");
    note(recipe.config.index_keys == IndexKeyRule::own, "own keys");
    note(recipe.config.index_keys == IndexKeyRule::slot, "slot keys");
    note(recipe.resumes(), "resumed");
    note(first.start_pos > 100000, "far");
    note(first.prefill() && first.tokens < largest_ratio, "shorter than a group");
    note(first.tokens == recipe.config.window, "one window");
    note(first.tokens == recipe.config.window + 1, "one window and a token");
    note(first.tokens >= 2 * recipe.config.window, "several windows");
    note(first.tokens % 2 == 1, "odd length");
    note(recipe.values.distinct_tokens.has_value(), "repeated tokens");
    note(!recipe.values.tokens.empty(), "token rules");
    note(recipe.values.input_rms < 0x1p-20, "tiny inputs");
    note(recipe.values.input_rms > 0x1p20, "large inputs");
  }
  for (const char* kind : {"window only", "ratio 1 kv+index source", "ratio 1 kv+index+candidate source",
                           "ratio 1 index source with candidates", "ratio 1 index+candidate source", "ratio 1 reader",
                           "ratio 2 kv+index source", "ratio 3 kv+index source", "ratio 4 kv+index source",
                           "ratio 5 kv+index source", "ratio 5 reader"}) {
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
  for (const char* what : {"e4m3", "bf16", "own keys", "slot keys", "resumed", "far", "shorter than a group",
                           "one window", "one window and a token", "several windows", "odd length", "repeated tokens",
                           "token rules", "tiny inputs", "large inputs", "ordinary", "extreme"}) {
    EXPECT_TRUE(seen.contains(what)) << what;
  }
}

TEST(RandomRecipe, OneSeedGivesOneFixture) {
  const auto bytes = [](std::uint64_t seed, const char* name) {
    const std::string path = testing::TempDir() + name;
    generate(random_recipe(seed).recipe, path);
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::filesystem::remove(path);
    return text;
  };
  for (const std::uint64_t seed : {7U, 8U, 9U}) {
    EXPECT_TRUE(bytes(seed, "random-recipe-1.h5") == bytes(seed, "random-recipe-2.h5")) << seed;
  }
  EXPECT_FALSE(bytes(7, "random-recipe-1.h5") == bytes(8, "random-recipe-2.h5"));
}

}  // namespace
}  // namespace attndiff
