#include <string_view>

#include "fuzz/demand.h"
#include "harness/compare/tolerance.h"
#include "harness/recipe/recipe.h"
#include "harness/run/known_failures.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

/// A text is read, or refused by an Error(input) that names its source.
template <typename Read>
void expect_value_or_error(Read read) {
  try {
    read();
  } catch (const Error& e) {
    fuzzing::demand(e.kind() == ErrorKind::input, "a fault of the text is an Error(input)");
    fuzzing::demand(e.details().file == "fuzzed.toml", "an error names the file");
  }
}

}  // namespace
}  // namespace attndiff

/// Every TOML reader on the same text: recipes, tolerances, known failures.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attndiff;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ModelFamily& family = family_named(ModelConfig{}.family);
  expect_value_or_error([&] { static_cast<void>(parse_recipe(text, "fuzzed.toml")); });
  expect_value_or_error([&] { static_cast<void>(Tolerances::parse(text, "fuzzed.toml", family)); });
  expect_value_or_error([&] { static_cast<void>(parse_known_failures(text, "fuzzed.toml", family)); });
  return 0;
}
