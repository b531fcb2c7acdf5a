#include <fmt/core.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <string>

#include "harness/cli/commands.h"
#include "harness/cli/files.h"
#include "harness/cli/options.h"
#include "harness/cli/outputs.h"
#include "harness/cli/standard_output.h"
#include "reports/atomic_file.h"
#include "reports/changes_text.h"
#include "reports/json.h"

namespace attndiff::cli {
namespace {

struct CompareArguments {
  std::string before;
  std::string after;
  std::string markdown;
  std::string html;
  ChangeOptions options;
};

ExitCode run_compare(const CompareArguments& a) {
  check_files({{"OLD.json", a.before}, {"NEW.json", a.after}}, {{"--markdown", a.markdown}, {"--html", a.html}});
  const RunReport before = read_report(a.before);
  const RunReport after = read_report(a.after);
  const Changes changes = changes_between(before, after, a.options);
  if (!a.markdown.empty()) {
    write_atomically(a.markdown, changes_markdown(changes));
  }
  if (!a.html.empty()) {
    write_atomically(a.html, changes_html(changes));
  }
  print_output("{}", changes_table(changes, colours(stdout)));
  if (changes.in_common == 0) {
    return kNothingVerified;
  }
  return changes.regressed() ? kFailed : kPassed;
}

}  // namespace

void add_compare(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command = program.add_subcommand("compare", "Say what changed from one report of replay to another");
  const auto a = std::make_shared<CompareArguments>();
  command->add_option("old", a->before, "report written by replay --json, to compare with")->required();
  command->add_option("new", a->after, "report to judge")->required();
  command
      ->add_option(
          "--headroom", a->options.headroom_factor,
          "a comparison that uses more than FACTOR times as much of its bound counts as a regression (default: 2)")
      ->check(CLI::Range(1.0, 1e9))
      ->option_text("FACTOR");
  add_text_option(*command, "--markdown", a->markdown, "also write the changes as Markdown");
  add_text_option(*command, "--html", a->html, "also write the changes as one HTML file");
  command->callback([a, &exit_code] { exit_code = run_compare(*a); });
}

}  // namespace attndiff::cli
