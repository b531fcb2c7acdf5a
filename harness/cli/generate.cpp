#include <fmt/format.h>

#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/files.h"
#include "harness/cli/options.h"
#include "harness/cli/standard_output.h"
#include "harness/recipe/generate.h"
#include "harness/recipe/presets.h"
#include "harness/recipe/recipe.h"

namespace attndiff::cli {
namespace {

struct GenerateOptions {
  std::string recipe;
  std::string preset;
  std::string output;
  bool list = false;
  bool stored = false;
};

ExitCode list_presets() {
  for (const PresetInfo& info : presets()) {
    print_output("{:<28} {}\n", info.name, info.note);
  }
  return kPassed;
}

ExitCode run_generate(const GenerateOptions& options) {
  if (options.list) {
    return list_presets();
  }
  if (options.recipe.empty() == options.preset.empty()) {
    throw Error(ErrorKind::usage, "generate needs either a recipe file or --preset NAME, not both");
  }
  if (options.output.empty()) {
    throw Error(ErrorKind::usage, "generate needs -o FIXTURE");
  }
  check_files({{"RECIPE", options.recipe}}, {{"--output", options.output}});
  generate(options.preset.empty() ? read_recipe(options.recipe) : preset(options.preset), options.output,
           options.stored ? RuleForm::values : RuleForm::rule);
  return kPassed;
}

}  // namespace

void add_generate(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command = program.add_subcommand("generate", "Make a fixture from a recipe: inputs, weights, no results");
  const auto options = std::make_shared<GenerateOptions>();
  command->add_option("recipe", options->recipe, "TOML recipe (fixtures/recipes/README.md)");
  add_text_option(*command, "--preset", options->preset, "a built-in recipe by name");
  add_text_option(*command, "-o,--output", options->output, "the fixture to write");
  command->add_flag("--stored", options->stored, "write every tensor's values instead of its rule");
  command->add_flag("--list-presets", options->list, "list the built-in recipes");
  command->callback([options, &exit_code] { exit_code = run_generate(*options); });
}

}  // namespace attndiff::cli
