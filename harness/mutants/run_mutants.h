#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/compare/report.h"
#include "harness/mutants/mutant.h"
#include "harness/mutants/mutant_fixtures.h"
#include "harness/run/listener.h"

namespace attndiff {

/// What became of a mutant.
enum class MutantOutcome : std::uint8_t {
  killed,     ///< the gate failed and named the right stage first
  misblamed,  ///< the gate failed, but named another stage first
  accused,    ///< the gate failed something that is not wrong
  lives,      ///< the gate passed
  error,      ///< its fixture could not be judged
};

[[nodiscard]] const char* name_of(MutantOutcome outcome) noexcept;

struct MutantResult {
  Mutant mutant;
  MutantOutcome outcome = MutantOutcome::lives;
  std::string error;  ///< why the fixture could not be judged
  /// The first failing comparison in (step, layer, stage) order of each mode, where there is one.
  std::optional<ComparisonRecord> lockstep;
  std::optional<ComparisonRecord> free;

  /// The one of the mutant's own mode.
  [[nodiscard]] const std::optional<ComparisonRecord>& named() const noexcept;
  /// A fault is killed; an equivalent mutant and a control live.
  [[nodiscard]] bool as_due() const noexcept;
};

/// The reference against the mutant in both modes, or in the one that the mutant asks for, in this process.
[[nodiscard]] FixtureReport replay_mutant(const Mutant& mutant, const std::string& fixture, int threads,
                                          ReplayListener& listener);

/// What a replay of the mutant comes to.
[[nodiscard]] MutantResult judge_mutant(const Mutant& mutant, const FixtureReport& report);

/// Replays it in this process, through its fixture, and judges it.
[[nodiscard]] MutantResult run_mutant(const Mutant& mutant, MutantFixtures& fixtures, int threads);

/// The matrix: a line for each mutant with what became of it, the stage named first in each mode, the fixture and by
/// how much the worst element passes its bound; what is not as due is explained below. Ends with the counts.
[[nodiscard]] std::string mutant_matrix(const std::vector<MutantResult>& results);

}  // namespace attndiff
