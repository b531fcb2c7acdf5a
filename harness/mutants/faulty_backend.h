#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/backend.h"
#include "harness/mutants/mutant.h"
#include "reference/contract/error.h"
#include "reference/deepseek_v41/steps.h"

namespace attndiff::mutants {

using MakeBackend = std::function<std::unique_ptr<Backend>(int threads, const std::string& name)>;

/// The reference with other steps.
[[nodiscard]] MakeBackend with_steps(deepseek_v41::Steps steps);

/// The same that also declares its arithmetic.
[[nodiscard]] MakeBackend with_steps(deepseek_v41::Steps steps, const Arithmetic& declared);

/// Changes a stage's value in place before anybody sees it; false withholds the stage.
using StageChange = std::function<bool(const LayerCall&, TensorView&)>;

/// The reference with one stage changed; each run of a fixture starts with a fresh change, which may remember.
[[nodiscard]] MakeBackend with_stage(std::string stage, std::function<StageChange()> start);
/// The same for a change without memory.
[[nodiscard]] MakeBackend with_stage(std::string stage, std::function<void(const LayerCall&, TensorView&)> change);

/// A backend, by default the reference, with a plan that does not publish a stage, which nobody can then compare.
[[nodiscard]] MakeBackend with_unplanned(std::string stage, MakeBackend inner = with_steps({}));

/// What a sequence is started from, changed behind the fixture's back.
struct StartChange {
  std::function<void(ModelConfig&)> config = [](ModelConfig&) {};
  std::function<void(const LayerRole&, InitialLayerState&)> state = [](const LayerRole&, InitialLayerState&) {};
};
[[nodiscard]] MakeBackend with_start(StartChange change);

/// The elements of a host view; throws Error(internal) for another type.
template <typename T>
[[nodiscard]] std::span<T> elements(const TensorView& view) {
  if (view.dtype != DTypeOf<T>::value) {
    throw Error(ErrorKind::internal, "a mutant takes a stage for another type than it has");
  }
  return {static_cast<T*>(view.data), static_cast<std::size_t>(view.count())};
}

}  // namespace attndiff::mutants
