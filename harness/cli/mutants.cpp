#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "harness/backends/registry.h"
#include "harness/cli/commands.h"
#include "harness/cli/options.h"
#include "harness/cli/program_path.h"
#include "harness/cli/standard_output.h"
#include "harness/isolation/child_process.h"
#include "harness/isolation/isolated_replay.h"
#include "harness/isolation/replay_channel.h"
#include "harness/mutants/gpu_catalogue.h"
#include "harness/mutants/random_trials.h"
#include "harness/mutants/run_mutants.h"
#include "harness/version.h"
#include "reports/atomic_file.h"

namespace attndiff::cli {
namespace {

constexpr const char* kCpu = "cpu";
constexpr const char* kCuda = "cuda";
constexpr std::int64_t kMostRandom = 1'000'000'000;

struct MutantsArguments {
  bool list = false;
  std::vector<std::string> only;
  std::string json;
  int threads = 0;
  std::string device = kCpu;
  bool released = false;
  std::int64_t random = 0;
  std::uint64_t seed = 1;
  std::string child_fixture;  ///< set in a child process: the fixture through which it replays one mutant
};

const std::vector<Mutant>& catalogue_of(const std::string& device) {
  return device == kCuda ? gpu_mutant_catalogue() : mutant_catalogue();
}

ExitCode list_mutants(const std::string& device) {
  const auto& all = catalogue_of(device);
  if (all.empty()) {
    print_output("none: this program was built without a CUDA toolkit\n");
  }
  for (const Mutant& m : all) {
    print_output("{:<39} {:<10} {:<12} {:<22} {}\n", m.name, name_of(m.kind), m.stage.empty() ? "-" : m.stage,
                 m.fixture, m.description);
  }
  return kPassed;
}

std::vector<Mutant> chosen(const MutantsArguments& a) {
  std::vector<Mutant> mutants;
  const auto& all = catalogue_of(a.device);
  if (a.only.empty()) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(mutants),
                 [&](const Mutant& m) { return at_released_geometry(m) == a.released; });
    if (mutants.empty()) {
      throw Error(ErrorKind::usage, {.file = {},
                                     .object = "--released",
                                     .problem = "there is no such mutant of the device " + a.device,
                                     .expected = "--device cuda",
                                     .found = {}});
    }
    return mutants;
  }
  for (const std::string& name : a.only) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Mutant& m) { return m.name == name; });
    if (found == all.end()) {
      throw Error(ErrorKind::usage, {.file = {},
                                     .object = "--only",
                                     .problem = "unknown mutant",
                                     .expected = "a name that --list shows",
                                     .found = name});
    }
    mutants.push_back(*found);
  }
  return mutants;
}

nlohmann::ordered_json record_json(const std::optional<ComparisonRecord>& record) {
  if (!record) {
    return nullptr;
  }
  const auto ratio = record->result.bound_ratio;
  nlohmann::ordered_json json{{"step", record->step},           {"layer_id", record->layer_id},
                              {"stage", record->stage},         {"verdict", name_of(record->result.verdict)},
                              {"count", record->result.count},  {"mismatches", record->result.mismatches},
                              {"reason", record->result.reason}};
  if (ratio) {
    json["bound_ratio"] = std::isfinite(*ratio) ? nlohmann::ordered_json(*ratio) : nlohmann::ordered_json("inf");
  }
  return json;
}

std::string results_json(const std::vector<MutantResult>& results) {
  nlohmann::ordered_json json{{"schema", "attndiff-mutants/1"}, {"tool_version", version_text()}};
  json["mutants"] = nlohmann::ordered_json::array();
  for (const MutantResult& r : results) {
    json["mutants"].push_back({{"name", r.mutant.name},
                               {"description", r.mutant.description},
                               {"kind", name_of(r.mutant.kind)},
                               {"outcome", name_of(r.outcome)},
                               {"as_due", r.as_due()},
                               {"due_stage", r.mutant.stage},
                               {"due_mode", r.mutant.mode},
                               {"fixture", r.mutant.fixture},
                               {"proof", r.mutant.proof},
                               {"error", r.error},
                               {"lockstep", record_json(r.lockstep)},
                               {"free", record_json(r.free)}});
  }
  return json.dump(2) + "\n";
}

ExitCode run_random(const MutantsArguments& a) {
  MutantFixtures scratch;
  std::vector<RandomTrial> trials;
  for (std::int64_t i = 0; i < a.random; ++i) {
    trials.push_back(run_random_trial(a.seed + static_cast<std::uint64_t>(i), scratch.folder()));
  }
  print_output("{}", trials_text(trials));
  const bool all_sound = std::all_of(trials.begin(), trials.end(), [](const auto& t) { return t.sound(); });
  return all_sound ? kPassed : kFailed;
}

/// Replays one mutant and tells the parent process.
ExitCode run_child(const MutantsArguments& a) {
  die_with_parent();
  ReplaySender parent;
  try {
    parent.done(replay_mutant(chosen(a).at(0), a.child_fixture, a.threads, parent));
  } catch (const Error& e) {
    parent.failed(e);
  }
  return kPassed;
}

/// The mutant in a process of its own.
MutantResult run_isolated(const Mutant& mutant, const std::string& fixture, const MutantsArguments& a) {
  ReplayListener nobody;
  const auto command = [&](const std::vector<std::string>&) {
    return std::vector<std::string>{program_path(), "mutants",   "--device",  a.device,
                                    "--only",       mutant.name, "--threads", std::to_string(a.threads),
                                    "--child",      fixture};
  };
  return judge_mutant(mutant, replay_isolated(fixture,
                                              {.command = command,
                                               .candidates = {mutant.name},
                                               .time_limit = std::chrono::seconds(mutant.time_limit),
                                               .reference = kCpu,
                                               .tolerance_file = {},
                                               .repeat = 1},
                                              nobody));
}

ExitCode run_catalogue(const MutantsArguments& a) {
  if (!a.child_fixture.empty()) {
    return run_child(a);
  }
  if (a.list) {
    return list_mutants(a.device);
  }
  if (a.random > 0) {
    return run_random(a);
  }
  if (a.device == kCuda) {
    static_cast<void>(make_backend(kCuda, a.threads));  // says why where no GPU is usable
  }
  MutantFixtures fixtures;
  std::vector<MutantResult> results;
  for (const Mutant& mutant : chosen(a)) {
    results.push_back(run_isolated(mutant, fixtures.path(mutant.fixture), a));
    if (a.device == kCuda) {
      print_error("{} {}\n", mutant.name, name_of(results.back().outcome));
    }
  }
  print_output("{}", mutant_matrix(results));
  if (!a.json.empty()) {
    write_atomically(a.json, results_json(results));
  }
  const bool all_as_due = std::all_of(results.begin(), results.end(), [](const auto& r) { return r.as_due(); });
  return all_as_due ? kPassed : kFailed;
}

}  // namespace

void add_mutants(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command =
      program.add_subcommand("mutants", "Does the gate catch known faults? Runs each named fault and control");
  const auto a = std::make_shared<MutantsArguments>();
  command->add_flag("--list", a->list, "list the mutants without running any");
  command->add_option("--only", a->only, "run this mutant; repeatable")->allow_extra_args(false);
  command
      ->add_option("--device", a->device,
                   "what is changed: cpu, the reference; cuda, the CUDA implementation, by other kernels")
      ->check(CLI::IsMember({kCpu, kCuda}))
      ->capture_default_str();
  command->add_flag("--released", a->released, "with --device cuda: instead, those at released geometry");
  add_text_option(*command, "--json", a->json, "write the matrix, schema attndiff-mutants/1");
  add_threads_option(*command, a->threads);
  command->add_option("--child", a->child_fixture)->group("");
  CLI::Option* random = command
                            ->add_option("--random", a->random,
                                         "instead, draw this many small fixtures, each with a correct implementation "
                                         "that must pass and a fault that must fail where it moves anything")
                            ->check(whole_number(1, kMostRandom))
                            ->excludes("--list", "--only", "--json", "--threads");
  command->add_option("--seed", a->seed, "seed of the first random fixture; the next ones count up")
      ->needs(random)
      ->capture_default_str();
  command->callback([a, &exit_code] { exit_code = run_catalogue(*a); });
}

}  // namespace attndiff::cli
