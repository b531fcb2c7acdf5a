#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace attndiff::cli_testing {

/// What a run of the program printed (stdout and stderr together) and how it ended.
struct ProgramRun {
  int exit_code = -1;
  std::string output;
};

/// Runs a command line through the shell, as a user would.
[[nodiscard]] inline ProgramRun run(const std::string& line) {
  ProgramRun run;
  const std::string command = line + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");  // NOLINT(cert-env33-c): the test is the shell's user
  if (pipe == nullptr) {
    return run;
  }
  char buffer[4096];
  for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    run.output.append(buffer, got);
  }
  const int status = pclose(pipe);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

/// Runs `attndiff ARGUMENTS` in the same way.
[[nodiscard]] inline ProgramRun run_attndiff(const std::string& arguments) {
  return run(std::string(ATTNDIFF_BINARY) + " " + arguments);
}

}  // namespace attndiff::cli_testing
