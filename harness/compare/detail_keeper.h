#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "harness/compare/detail.h"
#include "harness/compare/report.h"
#include "reference/contract/config.h"
#include "reference/contract/stage.h"

namespace attndiff {

/// Comparisons of a run that keep their details: failing ones first, in their order, then those that differ, with the
/// least headroom (the largest bound_ratio).
inline constexpr std::size_t kMostDetails = 200;

/// Decides, while a run goes on, which comparisons are worth a closer look: those among its kMostDetails worst so far.
class DetailKeeper {
 public:
  /// Whether this one is; it then counts among them.
  [[nodiscard]] bool wants(const Comparison& result);

 private:
  std::priority_queue<double, std::vector<double>, std::greater<>> worst_;  ///< ranks of those examined
};

/// A call's tensor by stage id on one side, or nullptr.
using FindTensor = std::function<const Tensor*(int)>;

/// The details of a comparison with its positions of violations (Comparison::bad), or null where the two tensors cannot
/// be laid beside each other.
[[nodiscard]] std::shared_ptr<const ComparisonDetail> examine(const StageInfo& stage, const ModelFamily& family,
                                                              const ModelConfig& config, const LayerRole& role,
                                                              const CallShape& call, const Comparison& result,
                                                              const FindTensor& reference, const FindTensor& candidate);

/// Drops the details of all but the kMostDetails worst comparisons of a run.
void keep_worst_details(RunReport& report);

}  // namespace attndiff
