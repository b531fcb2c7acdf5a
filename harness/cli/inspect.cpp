#include <fmt/format.h>

#include <map>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/standard_output.h"
#include "harness/fixture/reader.h"
#include "reference/contract/families.h"
#include "reference/contract/printable.h"

namespace attndiff::cli {
namespace {

void print_config(const ModelConfig& config) {
  print_output("config   family {}, index_keys {}\n", config.family, name_of(config.index_keys));
  std::string line;
  for (const ConfigInt& entry : config_ints()) {
    line += fmt::format(" {}={}", entry.name, config.*entry.member);
  }
  for (const ConfigReal& entry : config_reals()) {
    line += fmt::format(" {}={}", entry.name, config.*entry.member);
  }
  print_output("        {}\n", line);
}

void print_layers(const FixtureReader& fixture) {
  print_output("layers   {}\n", fixture.layers().size());
  for (const LayerRole& role : fixture.layers()) {
    print_output("  {:>4}   {}\n", role.layer_id, kind_of(role));
  }
}

void print_steps(const FixtureReader& fixture) {
  print_output("steps    {}{}\n", fixture.steps().size(),
               fixture.resumes() ? ", starting in mid-sequence from declared state" : "");
  for (std::size_t step = 0; step < fixture.steps().size(); ++step) {
    const CallShape& call = fixture.steps()[step].shape;
    print_output("  {:>4}   {} at {}, {} token{}\n", step, call.prefill() ? "prefill" : "decode", call.start_pos,
                 call.tokens, call.tokens == 1 ? "" : "s");
  }
}

/// How often each stage is recorded, in the order of the stage table.
void print_recorded(const FixtureReader& fixture) {
  std::map<std::string, std::size_t> tensors;
  for (std::size_t step = 0; step < fixture.steps().size(); ++step) {
    for (std::size_t layer = 0; layer < fixture.layers().size(); ++layer) {
      for (const std::string& stage : fixture.recorded_stages(step, layer)) {
        ++tensors[stage];
      }
    }
  }
  print_output("recorded {}\n", tensors.empty() ? "nothing: a run can compare backends, but not the file's own results"
                                                : "(tensors by stage)");
  for (const StageInfo& stage : family_named(fixture.config().family).stages) {
    if (const auto it = tensors.find(std::string(stage.name)); it != tensors.end()) {
      print_output("  {:<12} {}\n", stage.name, it->second);
    }
  }
}

ExitCode run_inspect(const std::string& path) {
  const FixtureReader fixture(path);
  print_output("fixture  {}\nproducer {}\nnote     {}\n", printable(path), printable(fixture.producer()),
               printable(fixture.note()));
  print_config(fixture.config());
  print_layers(fixture);
  print_steps(fixture);
  print_recorded(fixture);
  return kPassed;
}

}  // namespace

void add_inspect(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command = program.add_subcommand("inspect", "Say what is in a fixture, without running anything");
  const auto path = std::make_shared<std::string>();
  command->add_option("fixture", *path, "fixture file")->required();
  command->callback([path, &exit_code] { exit_code = run_inspect(*path); });
}

}  // namespace attndiff::cli
