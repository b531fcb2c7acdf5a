# cmake -DFOLDER=fixtures/recipes -DOUTPUT=FILE.cpp -P embed_recipes.cmake: the folder's TOML files as a C++ table.

file(GLOB recipes ${FOLDER}/*.toml)
list(LENGTH recipes count)
set(entries "")
foreach(recipe IN LISTS recipes)
  get_filename_component(name ${recipe} NAME_WLE)
  file(READ ${recipe} text)
  string(APPEND entries "    EmbeddedRecipe{\"${name}\", R\"recipe(${text})recipe\"},\n")
endforeach()
file(
  WRITE ${OUTPUT}
  "#include \"harness/recipe/embedded_recipes.h\"

#include <array>

namespace attndiff {
namespace {

constexpr std::array<EmbeddedRecipe, ${count}> kRecipes{
${entries}};

}  // namespace

std::span<const EmbeddedRecipe> embedded_recipes() noexcept { return kRecipes; }

}  // namespace attndiff
")
