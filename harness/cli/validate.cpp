#include <fmt/format.h>

#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/standard_output.h"
#include "harness/fixture/reader.h"
#include "harness/run/collect.h"
#include "reference/contract/printable.h"

namespace attndiff::cli {
namespace {

/// Prints what is wrong with one file; returns how many violations, or none where it keeps to the format.
std::size_t report(const std::string& path) {
  std::vector<Error> violations;
  try {
    violations = fixture_violations(path, CheckDepth::values);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::input) {
      throw;
    }
    violations.push_back(e);
  }
  for (const Error& violation : violations) {
    print_output("{}\n", violation.in_file(path).what());
  }
  if (violations.empty()) {
    print_output("{}: ok\n", printable(path));
  }
  return violations.size();
}

ExitCode run_validate(const std::vector<std::string>& paths) {
  const std::vector<std::string> files = collect_fixtures(paths, Shard{});
  std::size_t bad_files = 0;
  std::size_t violations = 0;
  for (const std::string& file : files) {
    const std::size_t found = report(file);
    violations += found;
    bad_files += found > 0 ? 1 : 0;
  }
  print_output("\n{} fixtures, {} with violations, {} violations\n", files.size(), bad_files, violations);
  if (files.empty()) {
    return kNothingVerified;
  }
  return bad_files == 0 ? kPassed : kUsageOrInput;
}

}  // namespace

void add_validate(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command =
      program.add_subcommand("validate", "Hold fixtures against the format and print every violation of it");
  const auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("fixtures", *paths, "fixture files and folders")->required();
  command->callback([paths, &exit_code] { exit_code = run_validate(*paths); });
}

}  // namespace attndiff::cli
