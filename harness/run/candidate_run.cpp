#include "harness/run/candidate_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/backends/transfer.h"
#include "harness/compare/compare.h"
#include "harness/fixture/reader.h"
#include "harness/run/announced.h"
#include "harness/run/score_margin.h"
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

/// The judgements of a call, the worst of them with details.
std::vector<StageJudgement> examined(std::vector<StageJudgement> judgements, const RunContext& context,
                                     const LayerInput& input, const StageValues& reference,
                                     const StageValues& candidate) {
  std::vector<StageJudgement*> worst;
  for (StageJudgement& judgement : judgements) {
    if (context.details.wants(judgement.result)) {
      worst.push_back(&judgement);
    }
  }
  context.pool.parallel_for(static_cast<std::int64_t>(worst.size()), [&](std::int64_t i) {
    StageJudgement& judgement = *worst[static_cast<std::size_t>(i)];
    judgement.detail = examine(
        *judgement.stage, context.family, context.fixture.config(), context.fixture.layers()[input.layer], input.shape,
        judgement.result, [&](int id) { return reference.find(id); }, [&](int id) { return candidate.find(id); });
  });
  return judgements;
}

/// Stages that decide something in that layer: discrete ones, those that decide a selection, and those that are
/// quantised as the activation of an e4m3 weight.
std::set<int> deciding_stages(const ModelFamily& family, const LayerWeights& weights) {
  std::set<int> ids;
  for (const StageInfo& stage : family.stages) {
    const bool quantised = std::any_of(stage.activates.begin(), stage.activates.end(), [&](std::string_view name) {
      const auto weight = weights.all().find(name);
      return weight != weights.all().end() && weight->second.quantised();
    });
    if (stage.followed || quantised) {
      ids.insert(stage.id);
    }
  }
  return ids;
}

/// Keeps what the reference makes of each stage, then takes over the candidate's value of a deciding stage that passes
/// its judgement, so that a legitimate difference there is not held against what comes after; a wrong value is not
/// followed.
class Follower final : public Observer {
 public:
  Follower(const RunContext& context, const StageValues& candidate, SelectionOrder order, std::set<int> deciding,
           bool certifiable, Capture::Filter kept)
      : context_(context),
        candidate_(candidate),
        order_(order),
        deciding_(std::move(deciding)),
        certifiable_(certifiable),
        kept_(std::move(kept)) {}

  [[nodiscard]] Interest interest(const LayerCall&, const StageInfo& stage) override {
    const bool takes_over = deciding_.contains(stage.id) && candidate_.find(stage.id) != nullptr;
    return kept_(stage) | (takes_over ? Interest::replace : Interest::nothing);
  }

  void on_stage(const LayerCall&, StageView& view, Stream stream) override {
    const StageInfo& stage = view.stage;
    Tensor& own = own_.value(stage.id);
    own = enqueue_download(view.value, stream);
    const Tensor* theirs = deciding_.contains(stage.id) ? candidate_.find(stage.id) : nullptr;
    if (theirs != nullptr && follows(stage, own, *theirs)) {
      enqueue_upload(*theirs, view.value, stream);
    } else if (stage.kind == StageKind::real) {
      deciding_.erase(stage.id);
    }
  }

  [[nodiscard]] const StageValues& stages() const noexcept { return own_; }
  /// The deciding stages of the call, but for real ones whose value was not taken over: what differs there also
  /// differs in what comes after.
  [[nodiscard]] const std::set<int>& followed() const noexcept { return deciding_; }

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
    if (is_tie(stage, evidence, own, theirs)) {
      return true;
    }
    const auto margin = certifiable_ ? std::nullopt : score_margin(stage, context_.tolerances.at(stage), evidence);
    return margin && margin->within_limits;
  }

  const RunContext& context_;
  const StageValues& candidate_;
  SelectionOrder order_;
  std::set<int> deciding_;
  bool certifiable_;
  Capture::Filter kept_;
  StageValues own_;
};

class FreeRun final : public CandidateRun {
 public:
  FreeRun(const RunContext& context, Backend& candidate, Backend& reference)
      : context_(context),
        candidate_(candidate),
        sequence_(start_announced(candidate, context.fixture, mode(), context.listener)),
        follower_(reference.start(context.fixture)) {}

  [[nodiscard]] const char* mode() const final { return "free"; }
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
    const bool published_all = certifiable(published, call.stages);
    // What nothing certifies is measured by the follower's own scores.
    const std::set<int> deciding = deciding_stages(context_.family, *call.input.weights);
    Follower follower(context_, found_, plan.selection_order, deciding, published_all, [&](const StageInfo& stage) {
      return !published_all || wanted.contains(stage.id) ? Interest::read : kept(stage);
    });
    const bool followed = follow(call.input, follower);
    const FreeEvidence evidence{.family = context_.family,
                                .tolerances = context_.tolerances,
                                .selection_order = plan.selection_order,
                                .arithmetic = plan.arithmetic,
                                .candidate = found_,
                                .following = followed ? follower.stages() : call.stages,
                                .reference = call.stages,
                                .followed = follower.followed(),
                                .certifiable = followed && published_all,
                                .same_history = same_history_};
    same_history_ = same_history_ && codes_are_determined(evidence);
    return examined(judge_free(wanted, evidence), context_, call.input, evidence.following, found_);
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
      : context_(context),
        sequence_(start_announced(candidate, context.fixture, mode(), context.listener)),
        observed_(observed) {}

  [[nodiscard]] const char* mode() const final { return "production"; }
  [[nodiscard]] bool looks_at(const CandidateRun& other) const override { return &other == &observed_; }

  [[nodiscard]] std::vector<StageJudgement> run(const ReferenceCall& call, const std::set<int>& wanted) override {
    static const StageTolerance kExact;
    const StageInfo& result = context_.family.stages.back();
    Capture found([&](const StageInfo& stage) { return stage.id == result.id ? Interest::read : Interest::nothing; });
    sequence_->forward(call.input, found);
    if (!wanted.contains(result.id)) {
      return {};
    }
    return examined({{.stage = &result,
                      .result = compare(result, observed_.found().find(result.id), found.find(result.id), kExact),
                      .tolerance = "bit for bit what the observed run gives"}},
                    context_, call.input, observed_.found(), found.stages());
  }

 private:
  const RunContext& context_;
  std::unique_ptr<Sequence> sequence_;
  const FreeRun& observed_;
};

/// The observed run over again: a result that changes from run to run depends on something that it must not depend on.
class RepeatRun final : public CandidateRun {
 public:
  RepeatRun(const RunContext& context, Backend& candidate, const FreeRun& observed)
      : context_(context), candidate_(candidate), observed_(observed) {
    for (int run = 1; run < context.repeat; ++run) {
      sequences_.push_back(start_announced(candidate, context.fixture, mode(), context.listener));
    }
  }

  [[nodiscard]] const char* mode() const final { return "repeat"; }
  [[nodiscard]] bool looks_at(const CandidateRun& other) const override { return &other == &observed_; }

  [[nodiscard]] std::vector<StageJudgement> run(const ReferenceCall& call, const std::set<int>& wanted) override {
    const std::set<int> published =
        published_stages(candidate_.plan(context_.fixture, call.input.step, call.input.layer));
    std::map<int, StageJudgement> judgements;
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      Capture found(
          [&](const StageInfo& stage) { return published.contains(stage.id) ? Interest::read : Interest::nothing; });
      sequences_[i]->forward(call.input, found);
      for (const int id : wanted) {
        if (published.contains(id) && !(judgements.contains(id) && fails_run(judgements.at(id).result.verdict))) {
          judgements[id] = judge(context_.family.stages[static_cast<std::size_t>(id)], found, i + 2);
        }
      }
    }
    std::vector<StageJudgement> in_order;
    for (auto& [id, judgement] : judgements) {
      in_order.push_back(std::move(judgement));
    }
    return in_order;
  }

 private:
  /// Bits, not values: two zeros of different sign, or two NaN, show a change as well as two numbers do.
  [[nodiscard]] StageJudgement judge(const StageInfo& stage, const Capture& found, std::size_t run) const {
    static const StageTolerance kExact;
    const Tensor* first = observed_.found().find(stage.id);
    const Tensor* again = found.find(stage.id);
    Comparison result = compare(stage, first, again, kExact);
    const bool changed = first != nullptr && again != nullptr && first->bytes() == again->bytes() &&
                         !std::equal(first->raw(), first->raw() + first->bytes(), again->raw());
    if (fails_run(result.verdict)) {
      result.reason = fmt::format("run {} of {} differs from the first: {}", run, context_.repeat, result.reason);
    } else if (changed) {
      result.verdict = Verdict::fail;
      result.reason = fmt::format("run {} of {} has other bits for equal values (the sign of a zero, or a NaN)", run,
                                  context_.repeat);
    }
    return {.stage = &stage,
            .result = std::move(result),
            .tolerance = fmt::format("bit for bit the same in {} runs", context_.repeat)};
  }

  const RunContext& context_;
  Backend& candidate_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  const FreeRun& observed_;
};

class LockstepRun final : public CandidateRun {
 public:
  LockstepRun(const RunContext& context, Backend& candidate)
      : context_(context),
        candidate_(candidate),
        sequence_(start_announced(candidate, context.fixture, mode(), context.listener)) {}

  [[nodiscard]] const char* mode() const final { return "lockstep"; }

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
    const LockstepEvidence evidence{
        .family = context_.family, .candidate = restoring.stages(), .reference = call.stages, .bounds = bounds};
    return examined(judge_lockstep(wanted, evidence), context_, call.input, call.stages, restoring.stages());
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
  if (context.repeat > 1) {
    runs.push_back(std::make_unique<RepeatRun>(context, candidate, looked_at));
  }
  return runs;
}

std::unique_ptr<CandidateRun> make_lockstep_run(const RunContext& context, Backend& candidate) {
  return std::make_unique<LockstepRun>(context, candidate);
}

}  // namespace attndiff
