#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>

#include "harness/cli/commands.h"
#include "harness/version.h"

namespace attndiff::cli {
namespace {

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
    program.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& e) {
    return program.exit(e) == 0 ? kPassed : kUsageOrInput;
  } catch (const Error& e) {
    fmt::print(stderr, "attndiff: {}\n", e.what());
    return exit_code_of(e.kind());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "attndiff: out of memory\n");
    return kInternal;
  } catch (const std::exception& e) {
    fmt::print(stderr, "attndiff: internal error: {}\n", e.what());
    return kInternal;
  }
}

}  // namespace
}  // namespace attndiff::cli

int main(int argc, char** argv) { return attndiff::cli::run(argc, argv); }
