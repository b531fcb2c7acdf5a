#pragma once

#include <span>
#include <string_view>

namespace attndiff {

struct EmbeddedRecipe {
  std::string_view name;
  std::string_view text;  ///< TOML
};

/// The files of fixtures/recipes at build time, in no particular order; the body is what
/// embed_recipes.cmake writes.
[[nodiscard]] std::span<const EmbeddedRecipe> embedded_recipes() noexcept;

}  // namespace attndiff
