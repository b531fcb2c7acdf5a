#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <string_view>

#include "harness/cli/commands.h"
#include "harness/cli/standard_output.h"
#include "harness/version.h"

namespace attndiff::cli {
namespace {

/// CLI11 takes the argument after `--json=` as its value, which may be a fixture.
void refuse_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      throw Error(ErrorKind::usage, std::string(word.substr(0, word.size() - 1)) + ": must not be empty");
    }
  }
}

int run(int argc, char** argv) {
  CLI::App program{"attndiff: is an attention kernel still right, and if not, where does it go wrong?"};
  program.set_version_flag("--version", version_text());
  program.require_subcommand(1);
  ExitCode exit_code = kInternal;
  for (const auto add : {add_replay, add_inspect, add_validate, add_topk, add_generate, add_import, add_record,
                         add_compare, add_mutants, add_doctor}) {
    add(program, exit_code);
  }
  try {
    refuse_empty_values(argc, argv);
    program.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& e) {
    return program.exit(e) == 0 ? kPassed : kUsageOrInput;
  } catch (const Error& e) {
    print_error("attndiff: {}\n", e.what());
    return exit_code_of(e.kind());
  } catch (const std::bad_alloc&) {
    print_error("attndiff: out of memory\n");
    return kInternal;
  } catch (const std::exception& e) {
    print_error("attndiff: internal error: {}\n", e.what());
    return kInternal;
  }
}

}  // namespace
}  // namespace attndiff::cli

int main(int argc, char** argv) {
  attndiff::cli::occupy_standard_descriptors();
  return attndiff::cli::finish_output(attndiff::cli::run(argc, argv));
}
