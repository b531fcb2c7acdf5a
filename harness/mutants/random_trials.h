#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/mutants/random_effect.h"

namespace attndiff {

/// What became of one fault in one random fixture.
enum class TrialOutcome : std::uint8_t {
  failed,      ///< it certainly errs, and the gate fails it
  equivalent,  ///< it certainly errs nowhere in this fixture, so that the gate may pass it or fail it
  false_pass,  ///< it certainly errs, and the gate passes it
  error,       ///< the fixture could not be judged
};

[[nodiscard]] const char* name_of(TrialOutcome outcome) noexcept;

/// One random fixture with a correct implementation and a fault.
struct RandomTrial {
  std::uint64_t seed = 0;
  TrialOutcome outcome = TrialOutcome::error;
  std::string fault;                 ///< the catalogue's name
  std::optional<Effect> effect;      ///< measured apart from the gate
  bool fault_failed = false;         ///< the gate fails the fault
  std::string orders;                ///< of the correct implementation's sums
  std::vector<std::string> accused;  ///< comparisons in which the gate fails the correct implementation
  std::int64_t constant = 0;         ///< comparisons that show nothing: the stage is constant on both sides
  std::int64_t comparisons = 0;      ///< of both candidates
  std::string error;                 ///< why the fixture could not be judged

  /// Neither a false failure nor a false pass.
  [[nodiscard]] bool sound() const noexcept;
};

/// Draws a recipe, an order of sums and a fault from the seed, writes the fixture into `folder`, judges both candidates
/// against `cpu` in both modes, or in lockstep alone where the recipe is not ordinary, and removes the fixture. A stage
/// that is constant on both sides fails a run as `degenerate`; that says what the fixture is, so it counts for neither
/// candidate where it is so for both.
[[nodiscard]] RandomTrial run_random_trial(std::uint64_t seed, const std::string& folder);

/// Counts, and a paragraph with a command for each trial that is not sound.
[[nodiscard]] std::string trials_text(const std::vector<RandomTrial>& trials);

}  // namespace attndiff
