#include "harness/run/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "harness/compare/locate.h"
#include "harness/fixture/reader.h"
#include "harness/run/call_clock.h"
#include "harness/run/candidate_run.h"
#include "harness/run/coverage.h"
#include "harness/run/crash.h"
#include "harness/run/known_failures.h"
#include "harness/run/layer_loader.h"
#include "harness/run/repro.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

std::set<int> stages_asked_for(const ModelFamily& family, const std::vector<std::string>& names) {
  std::set<int> ids;
  for (const std::string& name : names) {
    const StageInfo* stage = family.find(name);
    if (stage == nullptr) {
      std::vector<std::string_view> known;
      for (const StageInfo& info : family.stages) {
        known.push_back(info.name);
      }
      throw Error(ErrorKind::usage, {.file = {},
                                     .object = "--stages",
                                     .problem = "unknown stage",
                                     .expected = fmt::format("{}", fmt::join(known, ", ")),
                                     .found = name});
    }
    ids.insert(stage->id);
  }
  return ids;
}

class FixtureReplay {
 public:
  FixtureReplay(const FixtureReader& fixture, const ReplayBackends& backends, const ReplayOptions& options,
                FixtureReport& report, ReplayListener& listener)
      : fixture_(fixture),
        backends_(backends),
        options_(options),
        family_(family_named(fixture.config().family)),
        asked_(stages_asked_for(family_, options.stages)),
        tolerances_(options.tolerance_file.empty() ? Tolerances::defaults(family_)
                                                   : Tolerances::from_file(options.tolerance_file, family_)),
        pool_(options.threads),
        clock_(listener),
        tracker_(clock_),
        context_{.fixture = fixture,
                 .family = family_,
                 .tolerances = tolerances_,
                 .pool = pool_,
                 .listener = tracker_,
                 .details = details_,
                 .repeat = options.repeat},
        loader_(fixture),
        reference_(backends.reference->start(fixture)),
        report_(report) {
    for (const auto& candidate : backends.candidates) {
      start(*candidate);
    }
  }

  void run() {
    context_.listener.on_fixture(fixture_.steps().size() * fixture_.layers().size());
    for (std::size_t step = 0; step < fixture_.steps().size(); ++step) {
      for (std::size_t layer = 0; layer < fixture_.layers().size(); ++layer) {
        run_layer(step, layer);
      }
    }
    report_.timings = clock_.timings();
    report_.coverage = coverage_.coverage().all();
    report_.uncovered = unmet(coverage_.coverage(), parse_must_cover(fixture_.must_cover(), "/ attribute must_cover"));
  }

 private:
  /// One candidate in one mode.
  struct Runner {
    Backend* backend = nullptr;
    std::unique_ptr<CandidateRun> run;
    bool crashed = false;
  };

  void start(Backend& candidate) {
    if (options_.repeat > 1 && (options_.mode == ReplayMode::lockstep || !candidate.computes())) {
      throw Error(ErrorKind::usage, {.file = {},
                                     .object = "--repeat",
                                     .problem = "candidate " + candidate.name() + " does not run freely here",
                                     .expected = "a candidate that computes, in --mode free or both",
                                     .found = {}});
    }
    const bool driven = !accepted_stages(candidate.plan(fixture_, 0, 0)).empty();
    if (options_.mode == ReplayMode::lockstep && !driven) {
      throw Error(ErrorKind::usage, {.file = {},
                                     .object = "--mode lockstep",
                                     .problem = "candidate " + candidate.name() + " takes no value from outside",
                                     .expected = "--mode free",
                                     .found = {}});
    }
    if (options_.mode != ReplayMode::lockstep) {
      for (auto& run : make_free_runs(context_, candidate, *backends_.reference)) {
        runners_.push_back({.backend = &candidate, .run = std::move(run), .crashed = false});
      }
    }
    const bool bounded = reference_->slots() != nullptr;
    if (options_.mode == ReplayMode::lockstep || (options_.mode == ReplayMode::both && driven && bounded)) {
      if (!bounded) {
        throw Error(ErrorKind::usage, {.file = {},
                                       .object = "--mode lockstep",
                                       .problem = "reference " + backends_.reference->name() + " gives no bounds",
                                       .expected = "--reference cpu",
                                       .found = {}});
      }
      runners_.push_back({.backend = &candidate, .run = make_lockstep_run(context_, candidate), .crashed = false});
      unrounded_ = true;
    }
  }

  [[nodiscard]] bool judged(std::size_t step, std::size_t layer) const {
    return options_.steps.contains(static_cast<std::int64_t>(step)) &&
           options_.layers.contains(fixture_.layers()[layer].layer_id);
  }

  /// Stages to be compared with a candidate in that call: those asked for that both sides publish, and those that a
  /// candidate must publish.
  [[nodiscard]] std::set<int> compared_stages(const Backend& candidate, std::size_t step, std::size_t layer) const {
    std::set<int> both;
    if (!judged(step, layer)) {
      return both;
    }
    const std::set<int> ours = published_stages(backends_.reference->plan(fixture_, step, layer));
    for (const int id : published_stages(candidate.plan(fixture_, step, layer))) {
      if (ours.contains(id) && (asked_.empty() || asked_.contains(id))) {
        both.insert(id);
      }
    }
    for (const StageInfo& stage : family_.stages) {
      if (stage.required && candidate.computes() && ours.contains(stage.id) &&
          (asked_.empty() || asked_.contains(stage.id))) {
        both.insert(stage.id);
      }
    }
    return both;
  }

  void run_layer(std::size_t step, std::size_t layer) {
    context_.listener.on_layer_call(step * fixture_.layers().size() + layer);
    const LayerInput input = loader_.load(step, layer);
    Capture own([&](const StageInfo&) { return unrounded_ ? Interest::read | Interest::unrounded : Interest::read; });
    clock_.time(backends_.reference->name(), "reference", [&] { reference_->forward(input, own); });
    clock_.time(backends_.reference->name(), "coverage", [&] { count_coverage(input, own); });
    const ReferenceCall call{.input = input, .stages = own.stages(), .slots = reference_->slots()};
    for (Runner& runner : runners_) {
      if (!runner.crashed) {
        const std::set<int> wanted = compared_stages(*runner.backend, step, layer);
        clock_.time_judging(runner.backend->name(), runner.run->mode(), [&] { run_candidate(runner, call, wanted); });
      }
    }
  }

  void count_coverage(const LayerInput& input, const Capture& own) {
    if (input.shared && input.shared->candidates.defined()) {
      coverage_.shared_candidates(input.shared->candidates);
    }
    coverage_.count_inputs(input.x);
    coverage_.count({.config = fixture_.config(),
                     .role = fixture_.layers()[input.layer],
                     .shape = input.shape,
                     .sequence = input.sequence},
                    [&](int id) { return own.find(id); });
  }

  void run_candidate(Runner& runner, const ReferenceCall& call, const std::set<int>& wanted) {
    try {
      for (StageJudgement& judgement : runner.run->run(call, wanted)) {
        ComparisonRecord record = describe(runner, call.input, std::string(judgement.stage->name));
        record.tolerance = std::move(judgement.tolerance);
        record.result = std::move(judgement.result);
        record.detail = std::move(judgement.detail);
        record.location = location_of(*judgement.stage, call.input, record.result);
        record.result.bad.clear();
        add(std::move(record));
      }
      list_unobserved(runner, call.input);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::input || e.kind() == ErrorKind::unavailable) {
        throw;
      }
      crash(runner, e.what());
    } catch (const std::exception& e) {
      crash(runner, e.what());
    }
  }

  void crash(const Runner& runner, const char* why) {
    ReproParts repro;
    repro.reference = backends_.reference->name();
    repro.repeat = options_.repeat;
    repro.tolerance_file = options_.tolerance_file;
    repro.fixture = fixture_.path();
    add(crashed_comparison(tracker_, why, family_.stages.back().name, std::move(repro)));
    stop(runner);
  }

  void add(ComparisonRecord record) {
    context_.listener.on_comparison(record);
    report_.comparisons.push_back(std::move(record));
  }

  /// A crashed run goes no further, nor does one that is compared with it.
  void stop(const Runner& crashed) {
    for (Runner& runner : runners_) {
      runner.crashed = runner.crashed || &runner == &crashed || runner.run->looks_at(*crashed.run);
    }
  }

  /// Stages inside a segment of the candidate that it does not publish: neither a pass nor missing.
  void list_unobserved(const Runner& runner, const LayerInput& input) {
    const Plan plan = runner.backend->plan(fixture_, input.step, input.layer);
    const std::set<int> published = published_stages(plan);
    for (const Segment& segment : plan.segments) {
      for (const int id : segment.stages) {
        if (!published.contains(id) && judged(input.step, input.layer) && (asked_.empty() || asked_.contains(id))) {
          ComparisonRecord record =
              describe(runner, input, std::string(family_.stages[static_cast<std::size_t>(id)].name));
          record.result.verdict = Verdict::unobserved;
          record.result.reason = "inside a fused segment of the candidate";
          add(std::move(record));
        }
      }
    }
  }

  /// Where the elements beyond their bound lie; nothing where none is, or where they are too many to say.
  [[nodiscard]] std::optional<std::string> location_of(const StageInfo& stage, const LayerInput& input,
                                                       const Comparison& result) const {
    const LayerRole& role = fixture_.layers()[input.layer];
    const auto shape = stage.shape(fixture_.config(), role, input.shape);
    if (!fails_run(result.verdict) || result.bad.empty() || result.bad.size() == kMostBad || !shape) {
      return std::nullopt;
    }
    return locate(stage, fixture_.config(), role, input.shape, *shape, result.bad);
  }

  [[nodiscard]] ComparisonRecord describe(const Runner& runner, const LayerInput& input, std::string stage) const {
    const LayerRole& role = fixture_.layers()[input.layer];
    const std::string mode = runner.run->mode();
    ComparisonRecord record;
    record.step = input.step;
    record.start_pos = input.shape.start_pos;
    record.tokens = input.shape.tokens;
    record.layer_id = role.layer_id;
    record.layer_kind = kind_of(role);
    record.candidate = runner.backend->name();
    record.mode = mode;
    record.repro = repro_command({.reference = backends_.reference->name(),
                                  .candidate = runner.backend->name(),
                                  .mode = mode,
                                  .repeat = options_.repeat,
                                  .layer_id = role.layer_id,
                                  .step = input.step,
                                  .stage = stage,
                                  .tolerance_file = options_.tolerance_file,
                                  .fixture = fixture_.path()});
    record.stage = std::move(stage);
    return record;
  }

  const FixtureReader& fixture_;
  const ReplayBackends& backends_;
  const ReplayOptions& options_;
  const ModelFamily& family_;
  std::set<int> asked_;
  Tolerances tolerances_;
  reference::ThreadPool pool_;
  CallClock clock_;
  CallTracker tracker_;
  DetailKeeper details_;
  RunContext context_;
  LayerLoader loader_;
  std::unique_ptr<Sequence> reference_;
  std::vector<Runner> runners_;
  bool unrounded_ = false;
  CoverageCounter coverage_{&pool_};
  FixtureReport& report_;
};

}  // namespace

FixtureReport replay_fixture(const std::string& path, const ReplayBackends& backends, const ReplayOptions& options) {
  ReplayListener nobody;
  return replay_fixture(path, backends, options, nobody);
}

FixtureReport replay_fixture(const std::string& path, const ReplayBackends& backends, const ReplayOptions& options,
                             ReplayListener& listener) {
  FixtureReport report;
  report.path = path;
  try {
    const FixtureReader fixture(path);
    FixtureReplay(fixture, backends, options, report, listener).run();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::usage || e.kind() == ErrorKind::unavailable) {
      throw;
    }
    report.error = e.in_file(path).what();
  }
  report.verdict = overall_verdict(report);
  return report;
}

std::string apply_known_failures(RunReport& report, const std::string& file) {
  const std::vector<KnownFailure> entries = read_known_failures(file, family_named(ModelConfig{}.family));
  const KnownFailureFindings findings = match_known_failures(report, entries, today_utc());
  for (const KnownFailureMatch& match : findings.excused) {
    report.fixtures[match.fixture].comparisons[match.comparison].known_failure = entries[match.entry].text();
  }
  for (FixtureReport& fixture : report.fixtures) {
    fixture.verdict = overall_verdict(fixture);
  }
  return known_failure_notes(entries, findings);
}

std::vector<std::string> unanswered(const RunReport& report, const ReplayOptions& options) {
  std::set<std::string> stages;
  std::set<std::int64_t> layers;
  std::set<std::int64_t> steps;
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (c.verified() || fails_run(c.result.verdict)) {
        stages.insert(c.stage);
        layers.insert(c.layer_id);
        steps.insert(static_cast<std::int64_t>(c.step));
      }
    }
  }
  std::vector<std::string> missing;
  for (const std::string& stage : options.stages) {
    if (!stages.contains(stage)) {
      missing.push_back("stage " + stage);
    }
  }
  for (const std::int64_t layer : options.layers.missing_from({layers.begin(), layers.end()})) {
    missing.push_back("layer " + std::to_string(layer));
  }
  for (const std::int64_t step : options.steps.missing_from({steps.begin(), steps.end()})) {
    missing.push_back("step " + std::to_string(step));
  }
  return missing;
}

}  // namespace attndiff
