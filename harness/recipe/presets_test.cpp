#include "harness/recipe/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "harness/fixture/reader.h"
#include "harness/recipe/contradictions.h"
#include "harness/recipe/generate.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class EveryPreset : public testing::TestWithParam<std::string> {};

TEST_P(EveryPreset, ParsesWithoutContradictions) {
  const Recipe recipe = preset(GetParam());
  EXPECT_TRUE(contradictions(recipe).empty());
  EXPECT_FALSE(recipe.note.empty());
  EXPECT_EQ(recipe.note.find('\n'), std::string::npos);
}

TEST_P(EveryPreset, IsTheFileOfItsName) {
  const Recipe built_in = preset(GetParam());
  const Recipe file = read_recipe(ATTNDIFF_SOURCE_DIR "/fixtures/recipes/" + GetParam() + ".toml");
  EXPECT_EQ(built_in.note, file.note);
  EXPECT_EQ(built_in.seed, file.seed);
}

TEST_P(EveryPreset, GeneratesTwiceTheSameBytesAndOpens) {
  const std::string first = testing::TempDir() + "preset-" + GetParam() + "-1.h5";
  const std::string second = testing::TempDir() + "preset-" + GetParam() + "-2.h5";
  generate(preset(GetParam()), first);
  generate(preset(GetParam()), second);
  EXPECT_TRUE(bytes_of(first) == bytes_of(second));
  const FixtureReader fixture(first);
  EXPECT_EQ(fixture.layers().size(), preset(GetParam()).layers.size());
  if (GetParam().starts_with("released-")) {
    EXPECT_LT(std::filesystem::file_size(first), 100'000U);
  }
  std::filesystem::remove(first);
  std::filesystem::remove(second);
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Presets, EveryPreset, testing::ValuesIn(preset_names()), test_name);

TEST(Presets, CoverEveryLayerKindAtReleasedGeometry) {
  std::set<std::string> kinds;
  for (const std::string& name : preset_names()) {
    if (!name.starts_with("released-")) {
      continue;
    }
    const Recipe recipe = preset(name);
    EXPECT_EQ(recipe.config.dim, 5120) << name;
    EXPECT_EQ(recipe.config.head_dim, 512) << name;
    kinds.insert(kind_of(recipe.layers.back().role));
  }
  EXPECT_THAT(kinds, testing::UnorderedElementsAre("window only", "ratio 2 kv+index source", "ratio 2 reader",
                                                   "ratio 1 kv+index+candidate source",
                                                   "ratio 1 index source with candidates", "ratio 1 reader"));
}

TEST(Presets, MicroHasTheSixLayerKindsInOrder) {
  const Recipe recipe = preset("micro");
  std::vector<std::string> kinds;
  for (const RecipeLayer& layer : recipe.layers) {
    EXPECT_EQ(layer.role.layer_id, static_cast<std::int64_t>(kinds.size()));
    kinds.push_back(kind_of(layer.role));
  }
  EXPECT_THAT(kinds, testing::ElementsAre("window only", "ratio 2 kv+index source", "ratio 2 reader",
                                          "ratio 1 kv+index+candidate source", "ratio 1 index source with candidates",
                                          "ratio 1 reader"));
  EXPECT_EQ(recipe.config.index_keys, IndexKeyRule::slot);
  EXPECT_EQ(preset("micro-65535").steps.front().shape.start_pos, 65535);
}

TEST(Presets, AnUnknownNameListsTheKnownOnes) {
  try {
    (void)preset("nano");
    FAIL() << "there is no preset nano";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(std::string(error.what()), testing::HasSubstr("micro-4095"));
  }
}

TEST(Presets, InfoNamesAndNotesAgree) {
  const std::vector<PresetInfo> all = presets();
  ASSERT_EQ(all.size(), preset_names().size());
  for (const PresetInfo& info : all) {
    EXPECT_EQ(info.note, preset(info.name).note);
  }
  const std::vector<std::string> names = preset_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(all.front().name, names.front());
}

}  // namespace
}  // namespace attndiff
