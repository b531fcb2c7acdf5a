#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/backend.h"
#include "harness/compare/report.h"
#include "harness/compare/tolerance.h"
#include "harness/run/int_list.h"

namespace attndiff {

/// What of a fixture is judged, and how. Filters choose what is judged; what that depends on still runs.
struct ReplayOptions {
  IntList layers;                   ///< by layer_id
  IntList steps;                    ///< by index
  std::vector<std::string> stages;  ///< by name; empty: all
  std::string tolerance_file;       ///< empty: the built-in tolerances
};

/// The backends of a run, named as the user named them.
struct ReplayBackends {
  std::unique_ptr<Backend> reference;
  std::vector<std::unique_ptr<Backend>> candidates;
};

/// Runs one fixture through the reference and every candidate, a layer of a step at a time, and compares each stage
/// that the candidate publishes. Whatever is wrong with the fixture ends up in the report's `error`, with what had
/// been compared before; a candidate that throws is `crashed` there and runs no further. Throws only Error(usage),
/// for an unknown stage, and Error(unavailable).
[[nodiscard]] FixtureReport replay_fixture(const std::string& path, const ReplayBackends& backends,
                                           const ReplayOptions& options);

}  // namespace attndiff
