#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/backend.h"

namespace attndiff {

/// What a run of the gate over a mutant must give.
enum class MutantKind : std::uint8_t {
  fault,       ///< a wrong implementation: the gate must fail, and name the stage that is wrong
  equivalent,  ///< a change that provably moves no result: the gate must pass
  control,     ///< a correct implementation that computes otherwise: the gate must pass
};

[[nodiscard]] const char* name_of(MutantKind kind) noexcept;

/// An implementation that differs from the reference in one known way.
struct Mutant {
  std::string name;         ///< in the field's words, with hyphens
  std::string description;  ///< one sentence
  MutantKind kind = MutantKind::fault;
  std::string stage;    ///< the first stage that must fail; empty unless a fault
  std::string fixture;  ///< by its name in mutant_fixtures.h
  /// Whose comparisons name the stage: "lockstep", or "free" for what only shows when results are carried on.
  std::string mode = "lockstep";
  bool one_mode = false;  ///< only that mode runs
  /// It ends or stops its process: only a process of its own can run it.
  bool needs_process = false;
  std::int64_t time_limit = 600;  ///< seconds that one of its calls may take there
  std::string proof = {};         ///< why an equivalent one moves nothing
  std::function<std::unique_ptr<Backend>(int threads, const std::string& name)> make;
};

/// Every mutant, in the order of the stages they touch; names are unique.
[[nodiscard]] const std::vector<Mutant>& mutant_catalogue();

}  // namespace attndiff
