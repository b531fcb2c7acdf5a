#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/backend.h"
#include "harness/compare/report.h"
#include "harness/compare/tolerance.h"
#include "harness/run/int_list.h"
#include "harness/run/listener.h"

namespace attndiff {

/// How a candidate runs beside the reference.
enum class ReplayMode : std::uint8_t {
  free,      ///< each side continues from its own results
  lockstep,  ///< the candidate gets the reference's value of each stage before it computes the next
  both,      ///< two runs of the candidate
};

/// What of a fixture is judged, and how. Filters choose what is judged; what that depends on still runs.
struct ReplayOptions {
  ReplayMode mode = ReplayMode::both;
  IntList layers;                   ///< by layer_id
  IntList steps;                    ///< by index
  std::vector<std::string> stages;  ///< by name; empty: all
  std::string tolerance_file;       ///< empty: the built-in tolerances
  int repeat = 1;                   ///< free runs of each candidate, which must agree bit for bit
  int threads = 0;                  ///< of the bounds' own computations; 0: the machine's
};

/// The backends of a run, named as the user named them.
struct ReplayBackends {
  std::unique_ptr<Backend> reference;
  std::vector<std::unique_ptr<Backend>> candidates;
};

/// Runs one fixture through the reference and every candidate, a layer of a step at a time, and compares each stage
/// that the candidate publishes.
///
/// In free mode a second run of the reference follows the candidate: it takes over the candidate's discrete stages
/// (codes, masks, positions) and index weights, once judged, so that every stage is judged by what the candidate itself
/// had to start from. In lockstep it is the other way round, and bounds are derived (docs/verdicts.md). A candidate
/// that takes nothing from outside, such as `recorded`, and one beside a reference that gives no bounds, run freely
/// only.
///
/// Whatever is wrong with the fixture ends up in the report's `error`, with what had been compared before; a candidate
/// that throws is `crashed` there and runs no further in that mode. Throws only Error(usage), for an unknown stage or a
/// mode or repetition that the backends cannot run, and Error(unavailable).
[[nodiscard]] FixtureReport replay_fixture(const std::string& path, const ReplayBackends& backends,
                                           const ReplayOptions& options);

/// The same, with somebody told of each step on the way.
[[nodiscard]] FixtureReport replay_fixture(const std::string& path, const ReplayBackends& backends,
                                           const ReplayOptions& options, ReplayListener& listener);

/// Marks the failing comparisons that a list of known failures excuses today, and judges the fixtures again without
/// them. Returns notes for people: entries that have expired or excused nothing.
[[nodiscard]] std::string apply_known_failures(RunReport& report, const std::string& file);

/// What the options ask for and no comparison of the run answered to: "stage lse", "layer 99".
[[nodiscard]] std::vector<std::string> unanswered(const RunReport& report, const ReplayOptions& options);

}  // namespace attndiff
