#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/recipe/recipe.h"

namespace attndiff {

/// A recipe that is built in: the file fixtures/recipes/NAME.toml.
struct PresetInfo {
  std::string name;
  std::string note;  ///< its recipe's note, one line
};

/// All presets, by name in alphabetical order.
[[nodiscard]] std::vector<PresetInfo> presets();
[[nodiscard]] std::vector<std::string> preset_names();

/// The recipe of that name; throws Error(usage) that lists the names.
[[nodiscard]] Recipe preset(std::string_view name);

}  // namespace attndiff
