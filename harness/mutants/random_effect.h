#pragma once

#include <optional>
#include <string>

#include "harness/backend.h"

namespace attndiff {

/// The first place where an implementation is certainly wrong.
struct Effect {
  std::size_t step = 0;
  std::int64_t layer_id = 0;
  std::string stage;
  std::string what;  ///< how far, or what is absent
};

/// Whether `candidate`, given the reference's value of every stage before the next one is computed, certainly errs: it
/// moves an element beyond 2E of the reference's value before its last rounding, E being half a unit plus the derived
/// slack; gives another code, position, mask or infinity; offers no value of a stage, or a wrongly shaped one; does not
/// plan to publish a stage that must be observable; or throws. Works on the captured values alone: nothing of the
/// comparator, its row checks, its limits on counts or its verdicts takes part. Throws what the fixture or the
/// reference throws.
[[nodiscard]] std::optional<Effect> certain_effect(const FixtureReader& fixture, Backend& reference,
                                                   Backend& candidate);

}  // namespace attndiff
