#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/backend.h"
#include "harness/compare/report.h"
#include "harness/compare/tolerance.h"
#include "harness/run/capture.h"
#include "reference/bound_inputs.h"

namespace attndiff {

/// A stage with what was found out about it.
struct StageJudgement {
  const StageInfo* stage = nullptr;
  Comparison result;
  std::string tolerance;  ///< in words
  std::shared_ptr<const ComparisonDetail> detail{};
};

/// What free mode compares a candidate's call with.
struct FreeEvidence {
  const ModelFamily& family;
  const Tolerances& tolerances;
  /// The order in which equal scores leave the candidate's selections: where it is torch's, no tie is excused.
  SelectionOrder selection_order = SelectionOrder::torch_cpu;
  Arithmetic arithmetic;  ///< what the candidate declares beyond float32 sums
  const StageValues& candidate;
  /// What the reference makes of each stage when it follows the candidate's discrete stages, before it takes them over.
  const StageValues& following;
  /// What it makes of them by itself.
  const StageValues& reference;
  /// Stages that the reference takes over from the candidate once they have passed.
  std::set<int> followed = {};
  /// True when the reference could follow everything that decides a selection: the candidate publishes it.
  bool certifiable = false;
  /// True while everything that the codes of earlier calls were made from agreed bit for bit.
  bool same_history = false;
};

/// True when every code of the call is made from stages that both sides publish and that agree bit for bit: then both
/// must quantise to the same codes.
[[nodiscard]] bool codes_are_determined(const FreeEvidence& evidence);

/// Judges the stages in `wanted`, each with its tolerance, against the reference that follows the candidate: a discrete
/// stage that differs from the reference's own, but is exactly what the reference makes of the candidate's inputs to
/// it, is `explained`; one that differs only among positions of equal score on both sides is a `tie`; another one
/// fails, as `uncertified` where the candidate does not publish what would certify it. A quantised stage whose inputs
/// agree bit for bit may not differ, whatever its tolerance says about flips before it.
[[nodiscard]] std::vector<StageJudgement> judge_free(const std::set<int>& wanted, const FreeEvidence& evidence);

/// True when a stage's two selections differ only among positions whose scores are equal on both sides, and the
/// candidate declares no order for those.
[[nodiscard]] bool is_tie(const StageInfo& stage, const FreeEvidence& evidence, const Tensor& ours,
                          const Tensor& theirs);

/// What lockstep compares a candidate's call with: both sides had the same inputs, stage by stage.
struct LockstepEvidence {
  const ModelFamily& family;
  const StageValues& candidate;
  const StageValues& reference;  ///< with unrounded values
  const BoundInputs& bounds;
};

/// Judges the stages in `wanted`: exactly where a stage's inputs determine it, else within its derived bound.
[[nodiscard]] std::vector<StageJudgement> judge_lockstep(const std::set<int>& wanted, const LockstepEvidence& evidence);

}  // namespace attndiff
