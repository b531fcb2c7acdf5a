#include "harness/mutants/run_mutants.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/backends/cpu.h"
#include "harness/run/replay.h"

namespace attndiff {
namespace {

constexpr const char* kNothing = "-";

std::optional<ComparisonRecord> first_failing(const FixtureReport& report, const std::string& mode) {
  const auto& all = report.comparisons;
  const auto first = std::find_if(all.begin(), all.end(), [&](const ComparisonRecord& record) {
    return record.mode == mode && fails_run(record.result.verdict);
  });
  return first == all.end() ? std::nullopt : std::optional(*first);
}

MutantOutcome outcome_of(const MutantResult& result, const FixtureReport& report) {
  if (report.error || report.comparisons.empty()) {
    return MutantOutcome::error;
  }
  if (!fails_run(report.verdict)) {
    return MutantOutcome::lives;
  }
  if (result.mutant.kind != MutantKind::fault) {
    return MutantOutcome::accused;
  }
  const auto& named = result.named();
  return named && named->stage == result.mutant.stage ? MutantOutcome::killed : MutantOutcome::misblamed;
}

std::string stage_text(const std::optional<ComparisonRecord>& record) { return record ? record->stage : kNothing; }

/// How wrong the named comparison is: times its bound, or elements where nothing may differ.
std::string error_text(const std::optional<ComparisonRecord>& record) {
  if (!record) {
    return kNothing;
  }
  const Comparison& c = record->result;
  if (c.verdict != Verdict::fail) {
    return std::string(name_of(c.verdict));
  }
  return c.bound_ratio ? fmt::format("{:.3g} x bound", *c.bound_ratio)
                       : fmt::format("{} of {} differ", c.mismatches, c.count);
}

std::string explained(const MutantResult& result) {
  if (!result.error.empty()) {
    return result.error;
  }
  const auto& record = result.lockstep ? result.lockstep : result.free;
  if (!record) {
    return "the gate passes it";
  }
  return fmt::format("{} mode, step {}, layer {}, {}: {}: {}", record->mode, record->step, record->layer_id,
                     record->stage, name_of(record->result.verdict), record->result.reason);
}

std::string totals_text(const std::vector<MutantResult>& results) {
  std::string text;
  for (const MutantKind kind : {MutantKind::fault, MutantKind::equivalent, MutantKind::control}) {
    const auto of_kind = [&](const MutantResult& r) { return r.mutant.kind == kind; };
    const auto total = std::count_if(results.begin(), results.end(), of_kind);
    const auto due =
        std::count_if(results.begin(), results.end(), [&](const MutantResult& r) { return of_kind(r) && r.as_due(); });
    text += fmt::format("{}{} of {} {}s {}", text.empty() ? "" : ", ", due, total, name_of(kind),
                        kind == MutantKind::fault ? "killed at their stage" : "pass");
  }
  return text + "\n";
}

}  // namespace

const char* name_of(MutantOutcome outcome) noexcept {
  switch (outcome) {
    case MutantOutcome::killed:
      return "killed";
    case MutantOutcome::misblamed:
      return "misblamed";
    case MutantOutcome::accused:
      return "accused";
    case MutantOutcome::lives:
      return "lives";
    case MutantOutcome::error:
      return "error";
  }
  return "?";
}

const std::optional<ComparisonRecord>& MutantResult::named() const noexcept {
  return mutant.mode == "free" ? free : lockstep;
}

bool MutantResult::as_due() const noexcept {
  return outcome == (mutant.kind == MutantKind::fault ? MutantOutcome::killed : MutantOutcome::lives);
}

FixtureReport replay_mutant(const Mutant& mutant, const std::string& fixture, int threads, ReplayListener& listener) {
  ReplayBackends backends;
  backends.reference = make_cpu_backend(threads);
  backends.candidates.push_back(mutant.make(threads, mutant.name));
  ReplayOptions options;
  options.mode = !mutant.one_mode ? ReplayMode::both : mutant.mode == "free" ? ReplayMode::free : ReplayMode::lockstep;
  options.threads = threads;
  return replay_fixture(fixture, backends, options, listener);
}

MutantResult judge_mutant(const Mutant& mutant, const FixtureReport& report) {
  MutantResult result{.mutant = mutant,
                      .outcome = MutantOutcome::error,
                      .error = report.error.value_or(""),
                      .lockstep = first_failing(report, "lockstep"),
                      .free = first_failing(report, "free")};
  result.outcome = outcome_of(result, report);
  return result;
}

MutantResult run_mutant(const Mutant& mutant, MutantFixtures& fixtures, int threads) {
  ReplayListener nobody;
  return judge_mutant(mutant, replay_mutant(mutant, fixtures.path(mutant.fixture), threads, nobody));
}

std::string mutant_matrix(const std::vector<MutantResult>& results) {
  std::size_t width = 0;
  for (const MutantResult& r : results) {
    width = std::max(width, r.mutant.name.size());
  }
  std::string text = fmt::format("{:<{}}  {:<10} {:<9} {:<12} {:<12} {:<12} {:<22} {}\n", "mutant", width, "kind",
                                 "outcome", "due", "lockstep", "free", "fixture", "worst error");
  std::string notes;
  for (const MutantResult& r : results) {
    text += fmt::format("{:<{}}  {:<10} {:<9} {:<12} {:<12} {:<12} {:<22} {}\n", r.mutant.name, width,
                        name_of(r.mutant.kind), name_of(r.outcome), r.mutant.stage.empty() ? kNothing : r.mutant.stage,
                        stage_text(r.lockstep), stage_text(r.free), r.mutant.fixture, error_text(r.named()));
    if (!r.as_due()) {
      notes += fmt::format("{} is not as due: {}\n", r.mutant.name, explained(r));
    }
    if (!r.mutant.proof.empty()) {
      notes += fmt::format("{} is equivalent: {}\n", r.mutant.name, r.mutant.proof);
    }
  }
  return text + (notes.empty() ? "" : "\n" + notes) + "\n" + totals_text(results);
}

}  // namespace attndiff
