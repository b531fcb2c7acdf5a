#include "harness/mutants/random_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "harness/backends/cpu.h"
#include "harness/fixture/reader.h"
#include "harness/mutants/mutant.h"
#include "harness/mutants/random_perturbation.h"
#include "harness/recipe/draw.h"
#include "harness/recipe/generate.h"
#include "harness/recipe/random_recipe.h"
#include "harness/run/replay.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

constexpr int kThreads = 1;
constexpr const char* kCorrect = "correct";
/// Salt of the seed for what is not drawn by random_recipe, so that both can change apart from one another.
constexpr std::uint64_t kChoices = 0x63686f69636573;

/// One of the faults that leave the process alive.
const Mutant& random_fault(Draw& draw) {
  static const std::vector<const Mutant*> faults = [] {
    std::vector<const Mutant*> all;
    for (const Mutant& mutant : mutant_catalogue()) {
      if (mutant.kind == MutantKind::fault && !mutant.needs_process) {
        all.push_back(&mutant);
      }
    }
    return all;
  }();
  return *faults[draw.below(faults.size())];
}

/// A file that goes with the object.
class ScratchFixture {
 public:
  ScratchFixture(const Recipe& recipe, std::string path) : path_(std::move(path)) { generate(recipe, path_); }
  ScratchFixture(const ScratchFixture&) = delete;
  ScratchFixture& operator=(const ScratchFixture&) = delete;
  ~ScratchFixture() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

using Place = std::tuple<std::size_t, std::int64_t, std::string, std::string>;

Place place_of(const ComparisonRecord& record) { return {record.step, record.layer_id, record.mode, record.stage}; }

std::string described(const ComparisonRecord& record) {
  return fmt::format("{} mode, step {}, layer {}, {}: {}: {}", record.mode, record.step, record.layer_id, record.stage,
                     name_of(record.result.verdict), record.result.reason);
}

void judge(const FixtureReport& report, RandomTrial& trial) {
  std::set<Place> constant;
  for (const ComparisonRecord& record : report.comparisons) {
    trial.comparisons += record.result.counted ? 1 : 0;
    if (record.candidate == kCorrect && record.result.verdict == Verdict::degenerate) {
      constant.insert(place_of(record));
    } else if (record.candidate == kCorrect && record.fails()) {
      trial.accused.push_back(described(record));
    }
  }
  trial.constant = static_cast<std::int64_t>(constant.size());
  trial.fault_failed = std::any_of(report.comparisons.begin(), report.comparisons.end(), [&](const auto& record) {
    const bool shows_nothing = record.result.verdict == Verdict::degenerate && constant.contains(place_of(record));
    return record.candidate != kCorrect && record.fails() && !shows_nothing;
  });
}

TrialOutcome outcome_of(const RandomTrial& trial) {
  if (!trial.effect) {
    return TrialOutcome::equivalent;
  }
  return trial.fault_failed ? TrialOutcome::failed : TrialOutcome::false_pass;
}

std::string command_for(const RandomTrial& trial) {
  return fmt::format("attndiff mutants --random 1 --seed {}", trial.seed);
}

}  // namespace

const char* name_of(TrialOutcome outcome) noexcept {
  switch (outcome) {
    case TrialOutcome::failed:
      return "failed";
    case TrialOutcome::equivalent:
      return "equivalent";
    case TrialOutcome::false_pass:
      return "false pass";
    case TrialOutcome::error:
      return "error";
  }
  return "?";
}

bool RandomTrial::sound() const noexcept {
  return accused.empty() && (outcome == TrialOutcome::failed || outcome == TrialOutcome::equivalent);
}

RandomTrial run_random_trial(std::uint64_t seed, const std::string& folder) {
  RandomTrial trial;
  trial.seed = seed;
  Draw draw(seed ^ kChoices);
  const mutants::Perturbation correct = mutants::random_perturbation(draw);
  const Mutant& fault = random_fault(draw);
  trial.orders = correct.text;
  trial.fault = fault.name;
  try {
    const RandomRecipe random = random_recipe(seed);
    const ScratchFixture fixture(random.recipe, fmt::format("{}/random-{}.h5", folder, seed));
    ReplayBackends backends;
    backends.reference = make_cpu_backend(kThreads);
    backends.candidates.push_back(correct.make(kThreads, kCorrect));
    backends.candidates.push_back(fault.make(kThreads, fault.name));
    ReplayOptions options;
    options.mode = random.ordinary ? ReplayMode::both : ReplayMode::lockstep;
    options.threads = kThreads;
    const FixtureReport report = replay_fixture(fixture.path(), backends, options);
    if (report.error) {
      trial.error = *report.error;
      return trial;
    }
    judge(report, trial);
    trial.effect =
        certain_effect(FixtureReader(fixture.path(), Guard::none), *backends.reference, *backends.candidates.back());
    trial.outcome = outcome_of(trial);
  } catch (const Error& error) {
    trial.error = error.what();
  }
  return trial;
}

std::string trials_text(const std::vector<RandomTrial>& trials) {
  const auto count = [&](auto is) { return std::count_if(trials.begin(), trials.end(), is); };
  const auto outcomes = [&](TrialOutcome outcome) {
    return count([&](const RandomTrial& t) { return t.outcome == outcome; });
  };
  std::set<std::string> drawn;
  std::set<std::string> caught;
  std::string notes;
  std::int64_t comparisons = 0;
  for (const RandomTrial& t : trials) {
    comparisons += t.comparisons;
    drawn.insert(t.fault);
    if (t.outcome == TrialOutcome::failed) {
      caught.insert(t.fault);
    }
    if (t.sound()) {
      continue;
    }
    notes += fmt::format("seed {}: {}\n", t.seed, command_for(t));
    if (!t.error.empty()) {
      notes += fmt::format("  cannot be judged: {}\n", t.error);
    }
    for (const std::string& place : t.accused) {
      notes += fmt::format("  false failure ({}): {}\n", t.orders, place);
    }
    if (t.outcome == TrialOutcome::false_pass) {
      notes += fmt::format("  false pass of {}: step {}, layer {}, {}: {}\n", t.fault, t.effect->step,
                           t.effect->layer_id, t.effect->stage, t.effect->what);
    }
  }
  return notes +
         fmt::format(
             "{} random fixtures from seed {}, {} comparisons\n"
             "correct implementations: {} with a false failure\n"
             "faults: {} failed, {} equivalent there ({} of them failed all the same), {} false passes, {} errors; {} "
             "of the {} faults drawn failed at least once\n"
             "{} fixtures have a stage that is constant, which shows nothing\n",
             trials.size(), trials.empty() ? 0 : trials.front().seed, comparisons,
             count([](const RandomTrial& t) { return !t.accused.empty(); }), outcomes(TrialOutcome::failed),
             outcomes(TrialOutcome::equivalent),
             count([](const RandomTrial& t) { return t.outcome == TrialOutcome::equivalent && t.fault_failed; }),
             outcomes(TrialOutcome::false_pass), outcomes(TrialOutcome::error), caught.size(), drawn.size(),
             count([](const RandomTrial& t) { return t.constant > 0; }));
}

}  // namespace attndiff
