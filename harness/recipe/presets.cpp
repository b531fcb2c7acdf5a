#include "harness/recipe/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/recipe/embedded_recipes.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

Recipe parse(const EmbeddedRecipe& recipe) { return parse_recipe(recipe.text, fmt::format("preset {}", recipe.name)); }

}  // namespace

std::vector<PresetInfo> presets() {
  std::vector<PresetInfo> all;
  for (const EmbeddedRecipe& recipe : embedded_recipes()) {
    all.push_back({std::string(recipe.name), parse(recipe).note});
  }
  std::sort(all.begin(), all.end(), [](const PresetInfo& a, const PresetInfo& b) { return a.name < b.name; });
  return all;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const EmbeddedRecipe& recipe : embedded_recipes()) {
    names.emplace_back(recipe.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Recipe preset(std::string_view name) {
  for (const EmbeddedRecipe& recipe : embedded_recipes()) {
    if (recipe.name == name) {
      return parse(recipe);
    }
  }
  throw Error(ErrorKind::usage, {.file = {},
                                 .object = "preset",
                                 .problem = "unknown preset",
                                 .expected = fmt::format("one of {}", fmt::join(preset_names(), ", ")),
                                 .found = std::string(name)});
}

}  // namespace attndiff
