#include "harness/compare/detail_keeper.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "reference/deepseek_v41/landmarks.h"

namespace attndiff {
namespace {

constexpr double kFailing = std::numeric_limits<double>::infinity();
constexpr double kNone = -1;

/// The larger, the more worth a look; kNone: nothing to see.
double rank_of(const Comparison& result) noexcept {
  if (fails_run(result.verdict)) {
    return kFailing;
  }
  const double ratio = result.bound_ratio.value_or(0);
  return result.mismatches == 0 ? kNone : std::isfinite(ratio) ? ratio : std::numeric_limits<double>::max();
}

std::vector<std::string> axis_names(const StageInfo& stage, const ModelConfig& config, const LayerRole& role,
                                    const CallShape& call, std::size_t rank) {
  std::vector<std::string> names;
  for (const AxisNames& axis : deepseek_v41::landmarks(stage, config, role, call).axes) {
    names.push_back(axis.one);
  }
  for (std::size_t axis = names.size(); axis < rank; ++axis) {
    names.push_back("axis " + std::to_string(axis));
  }
  return names;
}

/// The scores that a choice is made from: a real stage among its inputs.
ChoiceScores scores_of(const StageInfo& stage, const ModelFamily& family, const FindTensor& reference,
                       const FindTensor& candidate) {
  for (const int id : stage.inputs) {
    if (family.stages[static_cast<std::size_t>(id)].kind == StageKind::real) {
      return {.reference = reference(id), .candidate = candidate(id)};
    }
  }
  return {};
}

}  // namespace

bool DetailKeeper::wants(const Comparison& result) {
  const double rank = rank_of(result);
  if (!result.counted || rank == kNone) {
    return false;
  }
  if (worst_.size() == kMostDetails) {
    if (rank <= worst_.top()) {
      return false;
    }
    worst_.pop();
  }
  worst_.push(rank);
  return true;
}

std::shared_ptr<const ComparisonDetail> examine(const StageInfo& stage, const ModelFamily& family,
                                                const ModelConfig& config, const LayerRole& role, const CallShape& call,
                                                const Comparison& result, const FindTensor& reference,
                                                const FindTensor& candidate) {
  const Tensor* ours = reference(stage.id);
  const Tensor* theirs = candidate(stage.id);
  if (ours == nullptr || theirs == nullptr) {
    return nullptr;
  }
  auto detail = detail_of(stage, axis_names(stage, config, role, call, ours->shape().rank()), *ours, *theirs, result,
                          scores_of(stage, family, reference, candidate));
  return detail.has_value() ? std::make_shared<const ComparisonDetail>(std::move(*detail)) : nullptr;
}

void keep_worst_details(RunReport& report) {
  std::vector<ComparisonRecord*> detailed;
  for (FixtureReport& fixture : report.fixtures) {
    for (ComparisonRecord& c : fixture.comparisons) {
      if (c.detail != nullptr) {
        detailed.push_back(&c);
      }
    }
  }
  std::stable_sort(detailed.begin(), detailed.end(), [](const ComparisonRecord* a, const ComparisonRecord* b) {
    return rank_of(a->result) > rank_of(b->result);
  });
  for (std::size_t i = kMostDetails; i < detailed.size(); ++i) {
    detailed[i]->detail.reset();
  }
}

}  // namespace attndiff
