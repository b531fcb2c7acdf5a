#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/backend.h"
#include "harness/compare/detail_keeper.h"
#include "harness/run/judge.h"
#include "harness/run/listener.h"
#include "reference/thread_pool.h"

namespace attndiff {

/// One layer's call as the reference ran it by itself.
struct ReferenceCall {
  const LayerInput& input;
  const StageValues& stages;     ///< every stage of the call, unrounded values too where lockstep needs them
  const Slots* slots = nullptr;  ///< after the call; null where the reference keeps none on the host
};

/// What every candidate run of one fixture shares.
struct RunContext {
  const FixtureReader& fixture;
  const ModelFamily& family;
  const Tolerances& tolerances;
  reference::ThreadPool& pool;
  ReplayListener& listener;
  DetailKeeper& details;
  int repeat = 1;  ///< how often each candidate runs freely, observed alike
};

/// One candidate beside the reference in one mode, through one fixture.
class CandidateRun {
 public:
  CandidateRun() = default;
  CandidateRun(const CandidateRun&) = delete;
  CandidateRun& operator=(const CandidateRun&) = delete;
  virtual ~CandidateRun() = default;

  [[nodiscard]] virtual const char* mode() const = 0;
  /// Whether this run's results are compared with that other run's.
  [[nodiscard]] virtual bool looks_at(const CandidateRun& /*other*/) const { return false; }
  /// Runs the candidate's next call and judges the stages in `wanted`. Errors of the candidate leave as they are.
  [[nodiscard]] virtual std::vector<StageJudgement> run(const ReferenceCall& call, const std::set<int>& wanted) = 0;
};

/// The candidate continues from its own results, beside a fresh run of the reference that follows it; and, where it
/// computes, once more with nobody looking, and `repeat` - 1 times more looked at, all of which must give the same. The
/// runs go through each call in this order, and the first must outlive the others.
[[nodiscard]] std::vector<std::unique_ptr<CandidateRun>> make_free_runs(const RunContext& context, Backend& candidate,
                                                                        Backend& reference);
/// The candidate continues from the reference's results.
[[nodiscard]] std::unique_ptr<CandidateRun> make_lockstep_run(const RunContext& context, Backend& candidate);

/// Stage ids that a plan publishes, and that it accepts from outside.
[[nodiscard]] std::set<int> published_stages(const Plan& plan);
[[nodiscard]] std::set<int> accepted_stages(const Plan& plan);

}  // namespace attndiff
