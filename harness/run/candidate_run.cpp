#include "harness/run/candidate_run.h"

#include <algorithm>
#include <map>

#include "harness/backends/transfer.h"
#include "harness/compare/compare.h"
#include "harness/fixture/reader.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

std::set<int> collect(const Plan& plan, std::vector<int> Segment::*member) {
  std::set<int> ids;
  for (const Segment& segment : plan.segments) {
    ids.insert((segment.*member).begin(), (segment.*member).end());
  }
  return ids;
}

/// Keeps what the reference makes of each stage, then takes over the candidate's value of a discrete stage that passes
/// its judgement, so that a legitimate difference there is not held against what comes after; a wrong value is not
/// followed.
class Follower final : public Observer {
 public:
  Follower(const RunContext& context, const StageValues& candidate, SelectionOrder order, Capture::Filter kept)
      : context_(context), candidate_(candidate), order_(order), kept_(std::move(kept)) {}

  [[nodiscard]] Interest interest(const LayerCall&, const StageInfo& stage) override {
    const bool takes_over = stage.followed && candidate_.find(stage.id) != nullptr;
    return kept_(stage) | (takes_over ? Interest::replace : Interest::nothing);
  }

  void on_stage(const LayerCall&, StageView& view, Stream stream) override {
    const StageInfo& stage = view.stage;
    Tensor& own = own_.value(stage.id);
    own = Tensor(view.value.dtype, view.value.shape);
    enqueue_download(view.value, own, stream);
    const Tensor* theirs = stage.followed ? candidate_.find(stage.id) : nullptr;
    if (theirs != nullptr && follows(stage, own, *theirs)) {
      enqueue_upload(*theirs, view.value, stream);
    }
  }

  [[nodiscard]] const StageValues& stages() const noexcept { return own_; }

 private:
  [[nodiscard]] bool follows(const StageInfo& stage, const Tensor& own, const Tensor& theirs) const {
    const Comparison c = compare(stage, &own, &theirs, context_.tolerances.at(stage));
    if (c.verdict == Verdict::pass || c.verdict == Verdict::degenerate) {
      return c.counted;
    }
    const FreeEvidence evidence{.family = context_.family,
                                .tolerances = context_.tolerances,
                                .selection_order = order_,
                                .arithmetic = {},
                                .candidate = candidate_,
                                .following = own_,
                                .reference = own_};
    return is_tie(stage, evidence, own, theirs);
  }

  const RunContext& context_;
  const StageValues& candidate_;
  SelectionOrder order_;
  Capture::Filter kept_;
  StageValues own_;
};

class FreeRun final : public CandidateRun {
 public:
  FreeRun(const RunContext& context, Backend& candidate, Backend& reference)
      : context_(context),
        candidate_(candidate),
        sequence_(candidate.start(context.fixture)),
        follower_(reference.start(context.fixture)) {}

  [[nodiscard]] const char* mode() const override { return "free"; }
  /// What the candidate made of the last call.
  [[nodiscard]] const StageValues& found() const noexcept { return found_; }

  [[nodiscard]] std::vector<StageJudgement> run(const ReferenceCall& call, const std::set<int>& wanted) override {
    const Plan plan = candidate_.plan(context_.fixture, call.input.step, call.input.layer);
    const std::set<int> published = published_stages(plan);
    // Everything published is kept, whatever is judged: a stage's verdict looks at what it was made from.
    const auto kept = [&](const StageInfo& stage) {
      return published.contains(stage.id) ? Interest::read : Interest::nothing;
    };
    Capture found(kept);
    sequence_->forward(call.input, found);
    found_ = found.take();
    Follower follower(context_, found_, plan.selection_order,
                      [&](const StageInfo& stage) { return wanted.contains(stage.id) ? Interest::read : kept(stage); });
    const bool followed = follow(call.input, follower);
    const FreeEvidence evidence{.family = context_.family,
                                .tolerances = context_.tolerances,
                                .selection_order = plan.selection_order,
                                .arithmetic = plan.arithmetic,
                                .candidate = found_,
                                .following = followed ? follower.stages() : call.stages,
                                .reference = call.stages,
                                .certifiable = followed && certifiable(published, call.stages),
                                .same_history = same_history_};
    same_history_ = same_history_ && codes_are_determined(evidence);
    return judge_free(wanted, evidence);
  }

 private:
  /// Runs the follower; false once the candidate's values made that impossible (an index that names no row), from when
  /// on the reference's own results are all there is to compare with.
  bool follow(const LayerInput& input, Observer& observer) {
    if (!follower_) {
      return false;
    }
    try {
      follower_->forward(input, observer);
      return true;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::refused) {
        throw;
      }
      follower_.reset();
      return false;
    }
  }

  /// Whether the candidate publishes every discrete stage that the call has, in this call and in all before it: what it
  /// chose depends on all of them.
  bool certifiable(const std::set<int>& published, const StageValues& reference) {
    for (const StageInfo& stage : context_.family.stages) {
      if (stage.followed && reference.find(stage.id) != nullptr && !published.contains(stage.id)) {
        certifiable_ = false;
      }
    }
    return certifiable_;
  }

  const RunContext& context_;
  Backend& candidate_;
  std::unique_ptr<Sequence> sequence_;
  std::unique_ptr<Sequence> follower_;
  StageValues found_;
  bool certifiable_ = true;
  bool same_history_ = true;
};

/// The plan that runs when nobody looks: only the layer's result is read, and it must be the observed run's, bit for
/// bit.
class ProductionRun final : public CandidateRun {
 public:
  ProductionRun(const RunContext& context, Backend& candidate, const FreeRun& observed)
      : context_(context), sequence_(candidate.start(context.fixture)), observed_(observed) {}

  [[nodiscard]] const char* mode() const override { return "production"; }
  [[nodiscard]] bool looks_at(const CandidateRun& other) const override { return &other == &observed_; }

  [[nodiscard]] std::vector<StageJudgement> run(const ReferenceCall& call, const std::set<int>& wanted) override {
    static const StageTolerance kExact;
    const StageInfo& result = context_.family.stages.back();
    Capture found([&](const StageInfo& stage) { return stage.id == result.id ? Interest::read : Interest::nothing; });
    sequence_->forward(call.input, found);
    if (!wanted.contains(result.id)) {
      return {};
    }
    return {{.stage = &result,
             .result = compare(result, observed_.found().find(result.id), found.find(result.id), kExact),
             .tolerance = "bit for bit what the observed run gives"}};
  }

 private:
  const RunContext& context_;
  std::unique_ptr<Sequence> sequence_;
  const FreeRun& observed_;
};

class LockstepRun final : public CandidateRun {
 public:
  LockstepRun(const RunContext& context, Backend& candidate)
      : context_(context), candidate_(candidate), sequence_(candidate.start(context.fixture)) {}

  [[nodiscard]] const char* mode() const override { return "lockstep"; }

  [[nodiscard]] std::vector<StageJudgement> run(const ReferenceCall& call, const std::set<int>& wanted) override {
    const Plan plan = candidate_.plan(context_.fixture, call.input.step, call.input.layer);
    const std::set<int> accepted = accepted_stages(plan);
    const std::set<int> published = published_stages(plan);
    Substitution restoring(
        [&](const StageInfo& stage) { return accepted.contains(stage.id) ? call.stages.find(stage.id) : nullptr; },
        [&](const StageInfo& stage) {
          const bool asked = wanted.contains(stage.id) && published.contains(stage.id);
          return asked ? Interest::read : Interest::nothing;
        });
    sequence_->forward(call.input, restoring);

    WeightNorms& norms = norms_of(call.input);
    const BoundInputs bounds{
        .config = context_.fixture.config(),
        .role = context_.fixture.layers()[call.input.layer],
        .call = call.input.shape,
        .x = call.input.x,
        .norms = norms,
        .value = [&](int id) { return call.stages.find(id); },
        .unrounded = [&](int id) { return call.stages.find_unrounded(id); },
        .index_keys = call.slots != nullptr && call.slots->index_k ? call.slots->index_k->value : nullptr,
        .arithmetic = plan.arithmetic,
        .pool = context_.pool};
    return judge_lockstep(
        wanted,
        {.family = context_.family, .candidate = restoring.stages(), .reference = call.stages, .bounds = bounds});
  }

 private:
  /// The norms of the layer's weights; kept while the weights are, since a layer comes again at every step.
  WeightNorms& norms_of(const LayerInput& input) {
    auto& norms = norms_[input.layer];
    if (!norms || norms->owner() != input.weights) {
      norms = std::make_unique<WeightNorms>(input.weights);
    }
    return *norms;
  }

  const RunContext& context_;
  Backend& candidate_;
  std::unique_ptr<Sequence> sequence_;
  std::map<std::size_t, std::unique_ptr<WeightNorms>> norms_;
};

}  // namespace

std::set<int> published_stages(const Plan& plan) { return collect(plan, &Segment::publishes); }
std::set<int> accepted_stages(const Plan& plan) { return collect(plan, &Segment::accepts); }

std::vector<std::unique_ptr<CandidateRun>> make_free_runs(const RunContext& context, Backend& candidate,
                                                          Backend& reference) {
  std::vector<std::unique_ptr<CandidateRun>> runs;
  auto observed = std::make_unique<FreeRun>(context, candidate, reference);
  const FreeRun& looked_at = *observed;
  runs.push_back(std::move(observed));
  if (candidate.computes()) {
    runs.push_back(std::make_unique<ProductionRun>(context, candidate, looked_at));
  }
  return runs;
}

std::unique_ptr<CandidateRun> make_lockstep_run(const RunContext& context, Backend& candidate) {
  return std::make_unique<LockstepRun>(context, candidate);
}

}  // namespace attndiff
