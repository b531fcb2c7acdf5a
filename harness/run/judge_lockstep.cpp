#include "harness/compare/bounded.h"
#include "harness/compare/compare.h"
#include "harness/run/judge.h"

namespace attndiff {

std::vector<StageJudgement> judge_lockstep(const std::set<int>& wanted, const LockstepEvidence& e) {
  static const StageTolerance kExact;
  std::vector<StageJudgement> judgements;
  for (const int id : wanted) {
    const StageInfo& stage = e.family.stages[static_cast<std::size_t>(id)];
    const Tensor* reference = e.reference.find(id);
    const Tensor* candidate = e.candidate.find(id);
    const Tensor* unrounded = e.reference.find_unrounded(id);
    std::optional<StageSlack> slack;
    if (reference != nullptr && candidate != nullptr) {
      slack = e.family.slack(id, e.bounds);
    }
    if (slack) {
      judgements.push_back(
          {.stage = &stage,
           .result = compare_bounded(stage, *reference, unrounded, *slack, *candidate, e.bounds.pool),
           .tolerance = bounded_text(stage, e.family.terms(id, e.bounds.config, e.bounds.role, e.bounds.call))});
    } else {
      judgements.push_back({.stage = &stage,
                            .result = compare(stage, reference, candidate, kExact, {}, &e.bounds.pool),
                            .tolerance = kExact.text()});
    }
  }
  return judgements;
}

}  // namespace attndiff
