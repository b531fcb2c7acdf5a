#include "harness/run/record.h"

#include <memory>

#include "harness/backends/registry.h"
#include "harness/cli/commands.h"
#include "harness/cli/files.h"
#include "harness/cli/options.h"

namespace attndiff::cli {
namespace {

struct RecordOptions {
  std::string fixture;
  std::string output;
  std::string backend = "cpu";
  int threads = 0;
  bool stored = false;
};

}  // namespace

void add_record(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command =
      program.add_subcommand("record", "Run a backend over a fixture and store its results as `expected`");
  const auto options = std::make_shared<RecordOptions>();
  command->add_option("fixture", options->fixture, "fixture file")->required();
  add_text_option(*command, "-o,--output", options->output, "the fixture to write")->required();
  command->add_option("--backend", options->backend, "whose results")->capture_default_str();
  command->add_flag("--stored", options->stored, "write the values of weights and inputs that are given by a rule");
  add_threads_option(*command, options->threads);
  command->callback([options, &exit_code] {
    check_files({{"FIXTURE", options->fixture}}, {{"--output", options->output}});
    const auto backend = make_backend(options->backend, options->threads);
    try {
      record(options->fixture, options->output, *backend, options->stored ? RuleForm::values : RuleForm::rule);
    } catch (const Error& e) {
      throw e.in_file(options->fixture);
    }
    exit_code = kPassed;
  });
}

}  // namespace attndiff::cli
