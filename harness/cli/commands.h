#pragma once

#include <CLI/App.hpp>

#include "harness/cli/exit_code.h"

namespace attndiff::cli {

/// Each adds one command to the program; running it sets `exit_code`. Errors leave as attndiff::Error.
void add_replay(CLI::App& program, ExitCode& exit_code);
void add_inspect(CLI::App& program, ExitCode& exit_code);
void add_validate(CLI::App& program, ExitCode& exit_code);
void add_topk(CLI::App& program, ExitCode& exit_code);
void add_generate(CLI::App& program, ExitCode& exit_code);
void add_import(CLI::App& program, ExitCode& exit_code);
void add_record(CLI::App& program, ExitCode& exit_code);
void add_compare(CLI::App& program, ExitCode& exit_code);
void add_mutants(CLI::App& program, ExitCode& exit_code);
void add_doctor(CLI::App& program, ExitCode& exit_code);

}  // namespace attndiff::cli
