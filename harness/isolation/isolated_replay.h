#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "harness/compare/report.h"
#include "harness/run/listener.h"

namespace attndiff {

/// How a fixture is replayed in a process of its own.
struct Isolation {
  /// The command that replays the fixture through these candidates as a ReplaySender's process does; its first word is
  /// the program's path.
  std::function<std::vector<std::string>(const std::vector<std::string>& candidates)> command;
  std::vector<std::string> candidates;
  std::chrono::seconds time_limit{0};  ///< of one call of a candidate; 0: none
  // For the commands that reports give:
  std::string reference;
  std::string tolerance_file;
  int repeat = 1;
};

/// Replays one fixture in a child process. A candidate in whose call the child dies, or stays longer than the time
/// limit, is `crashed` there, with what it had been compared in before; then the others run again in a fresh child. A
/// child that dies elsewhere makes the fixture's `error`. Throws what the replay in the child threw: Error(usage) and
/// Error(unavailable); Error(internal) where no child can be started.
[[nodiscard]] FixtureReport replay_isolated(const std::string& path, const Isolation& isolation,
                                            ReplayListener& listener);

}  // namespace attndiff
