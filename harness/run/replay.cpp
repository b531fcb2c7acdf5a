#include "harness/run/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "harness/compare/compare.h"
#include "harness/fixture/reader.h"
#include "harness/run/capture.h"
#include "harness/run/layer_loader.h"
#include "harness/run/repro.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

constexpr const char* kMode = "free";

std::set<int> stages_of(const Plan& plan) {
  std::set<int> ids;
  for (const Segment& segment : plan.segments) {
    ids.insert(segment.publishes.begin(), segment.publishes.end());
  }
  return ids;
}

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

/// One candidate's run of a fixture.
struct Runner {
  const Backend* backend = nullptr;
  std::unique_ptr<Sequence> sequence;  ///< null once it has crashed
};

class FixtureReplay {
 public:
  FixtureReplay(const FixtureReader& fixture, const ReplayBackends& backends, const ReplayOptions& options,
                FixtureReport& report)
      : fixture_(fixture),
        backends_(backends),
        options_(options),
        family_(family_named(fixture.config().family)),
        asked_(stages_asked_for(family_, options.stages)),
        tolerances_(options.tolerance_file.empty() ? Tolerances::defaults(family_)
                                                   : Tolerances::from_file(options.tolerance_file, family_)),
        loader_(fixture),
        reference_{.backend = backends.reference.get(), .sequence = backends.reference->start(fixture)},
        report_(report) {
    for (const auto& candidate : backends.candidates) {
      candidates_.push_back({.backend = candidate.get(), .sequence = candidate->start(fixture)});
    }
  }

  void run() {
    for (std::size_t step = 0; step < fixture_.steps().size(); ++step) {
      for (std::size_t layer = 0; layer < fixture_.layers().size(); ++layer) {
        run_layer(step, layer);
      }
    }
  }

 private:
  [[nodiscard]] bool judged(std::size_t step, std::size_t layer) const {
    return options_.steps.contains(static_cast<std::int64_t>(step)) &&
           options_.layers.contains(fixture_.layers()[layer].layer_id);
  }

  /// Stages to be compared with a candidate in that call: those asked for that both sides publish.
  [[nodiscard]] std::set<int> compared_stages(const Backend& candidate, std::size_t step, std::size_t layer) const {
    const std::set<int> ours = stages_of(reference_.backend->plan(fixture_, step, layer));
    std::set<int> both;
    for (const int id : stages_of(candidate.plan(fixture_, step, layer))) {
      if (ours.count(id) != 0 && (asked_.empty() || asked_.count(id) != 0)) {
        both.insert(id);
      }
    }
    return both;
  }

  void run_layer(std::size_t step, std::size_t layer) {
    const LayerInput input = loader_.load(step, layer);
    const bool is_judged = judged(step, layer);
    std::vector<std::set<int>> wanted(candidates_.size());
    std::set<int> any;
    for (std::size_t c = 0; c < candidates_.size() && is_judged; ++c) {
      wanted[c] = compared_stages(*candidates_[c].backend, step, layer);
      any.insert(wanted[c].begin(), wanted[c].end());
    }
    Capture expected([&](const StageInfo& stage) { return any.count(stage.id) != 0; });
    reference_.sequence->forward(input, expected);
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      run_candidate(candidates_[c], input, wanted[c], expected);
    }
  }

  void run_candidate(Runner& candidate, const LayerInput& input, const std::set<int>& wanted, const Capture& expected) {
    if (!candidate.sequence) {
      return;
    }
    Capture found([&](const StageInfo& stage) { return wanted.count(stage.id) != 0; });
    try {
      candidate.sequence->forward(input, found);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::input || e.kind() == ErrorKind::unavailable) {
        throw;
      }
      candidate.sequence.reset();
      add_crash(*candidate.backend, input, e.what());
      return;
    }
    for (const int id : wanted) {
      const StageInfo& stage = family_.stages[static_cast<std::size_t>(id)];
      const StageTolerance& tolerance = tolerances_.at(stage);
      ComparisonRecord record = describe(*candidate.backend, input, std::string(stage.name));
      record.tolerance = tolerance.text();
      record.result = compare(stage, expected.find(id), found.find(id), tolerance);
      report_.comparisons.push_back(std::move(record));
    }
  }

  void add_crash(const Backend& candidate, const LayerInput& input, const std::string& why) {
    ComparisonRecord record = describe(candidate, input, std::string(family_.stages.back().name));
    record.result.verdict = Verdict::crashed;
    record.result.reason = why;
    report_.comparisons.push_back(std::move(record));
  }

  [[nodiscard]] ComparisonRecord describe(const Backend& candidate, const LayerInput& input, std::string stage) const {
    const LayerRole& role = fixture_.layers()[input.layer];
    ComparisonRecord record;
    record.step = input.step;
    record.start_pos = input.shape.start_pos;
    record.tokens = input.shape.tokens;
    record.layer_id = role.layer_id;
    record.layer_kind = kind_of(role);
    record.candidate = candidate.name();
    record.mode = kMode;
    record.repro = repro_command({.reference = backends_.reference->name(),
                                  .candidate = candidate.name(),
                                  .mode = kMode,
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
  LayerLoader loader_;
  Runner reference_;
  std::vector<Runner> candidates_;
  FixtureReport& report_;
};

}  // namespace

FixtureReport replay_fixture(const std::string& path, const ReplayBackends& backends, const ReplayOptions& options) {
  FixtureReport report;
  report.path = path;
  try {
    const FixtureReader fixture(path);
    FixtureReplay(fixture, backends, options, report).run();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::usage || e.kind() == ErrorKind::unavailable) {
      throw;
    }
    report.error = e.in_file(path).what();
  }
  report.verdict = overall_verdict(report);
  return report;
}

}  // namespace attndiff
