#pragma once

#include <string>
#include <utility>

#include "harness/mutants/faulty_backend.h"
#include "harness/mutants/mutant.h"

namespace attndiff::mutants {

/// Where a fault shows first.
struct Due {
  std::string stage;
  std::string fixture;
};

[[nodiscard]] inline Mutant fault(std::string name, std::string description, Due due, MakeBackend make) {
  return {.name = std::move(name),
          .description = std::move(description),
          .kind = MutantKind::fault,
          .stage = std::move(due.stage),
          .fixture = std::move(due.fixture),
          .make = std::move(make)};
}

/// The same with one step of the reference replaced.
template <typename Step, typename Replacement>
[[nodiscard]] Mutant step_fault(std::string name, std::string description, Due due, Step deepseek_v41::Steps::*step,
                                Replacement replacement) {
  deepseek_v41::Steps steps;
  steps.*step = std::move(replacement);
  return fault(std::move(name), std::move(description), std::move(due), with_steps(std::move(steps)));
}

[[nodiscard]] inline Mutant control(std::string name, std::string description, std::string fixture, MakeBackend make) {
  return {.name = std::move(name),
          .description = std::move(description),
          .kind = MutantKind::control,
          .stage = {},
          .fixture = std::move(fixture),
          .make = std::move(make)};
}

}  // namespace attndiff::mutants
