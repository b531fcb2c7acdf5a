#include <fmt/format.h>

#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/standard_output.h"
#include "harness/topk/cases.h"

namespace attndiff::cli {
namespace {

ExitCode check_cases(const std::string& file) {
  const TopkReport report = run_topk_cases(read_topk_cases(file));
  for (const TopkFailure& failure : report.failures) {
    print_output("fail  {}\n", describe(failure));
  }
  print_output("{} of {} recorded top-k cases agree with the built-in selection\n", report.passed, report.total);
  switch (report.verdict()) {
    case TopkReport::Verdict::pass:
      return kPassed;
    case TopkReport::Verdict::fail:
      return kFailed;
    case TopkReport::Verdict::nothing_checked:
      return kNothingVerified;
  }
  return kInternal;
}

}  // namespace

void add_topk(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command = program.add_subcommand("topk", "Check the built-in selection against recorded top-k cases");
  const auto file = std::make_shared<std::string>();
  command->add_option("--cases", *file, "JSON file of recorded cases (docs/topk.md)")->required();
  command->callback([file, &exit_code] { exit_code = check_cases(*file); });
}

}  // namespace attndiff::cli
