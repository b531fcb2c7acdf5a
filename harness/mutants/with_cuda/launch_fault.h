#pragma once

#include <functional>
#include <string>
#include <utility>

#include "device/launches.h"
#include "harness/mutants/fault.h"

namespace attndiff::mutants {

/// The CUDA implementation on GPU 0 with the launches that `make` returns: each backend starts with fresh ones, which
/// may remember. Workspaces are poisoned before every call, so that what a fault leaves unwritten is seen.
[[nodiscard]] MakeBackend with_launches(std::function<device::Launches()> make, const Arithmetic& declared = {});

/// The launches with one entry replaced.
template <typename Entry, typename Replacement>
[[nodiscard]] device::Launches replaced(Entry device::Launches::*entry, Replacement replacement) {
  device::Launches launches;
  launches.*entry = std::move(replacement);
  return launches;
}

/// A fault of one launch.
template <typename Entry, typename Replacement>
[[nodiscard]] Mutant launch_fault(std::string name, std::string description, Due due, Entry device::Launches::*entry,
                                  Replacement replacement) {
  return fault(std::move(name), std::move(description), std::move(due),
               with_launches([entry, replacement = std::move(replacement)] { return replaced(entry, replacement); }));
}

}  // namespace attndiff::mutants
