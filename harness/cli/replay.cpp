#include "harness/run/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "harness/backends/registry.h"
#include "harness/cli/commands.h"
#include "harness/cli/files.h"
#include "harness/cli/options.h"
#include "harness/cli/outputs.h"
#include "harness/cli/program_path.h"
#include "harness/compare/detail_keeper.h"
#include "harness/isolation/child_process.h"
#include "harness/isolation/isolated_replay.h"
#include "harness/isolation/replay_channel.h"
#include "harness/run/collect.h"
#include "harness/version.h"
#include "reference/contract/families.h"

namespace attndiff::cli {
namespace {

constexpr std::int64_t kMostRepeats = 1000;
constexpr std::int64_t kMostSeconds = 1'000'000;  ///< eleven days

struct ReplayArguments {
  std::string reference = "cpu";
  std::vector<std::string> candidates;
  std::string mode = "both";
  std::string layers;
  std::string steps;
  std::string stages;
  std::string tolerances;
  std::string known_failures;
  std::string shard;
  int repeat = 1;
  int threads = 0;
  std::int64_t time_limit = 600;
  bool in_process = false;
  bool child = false;
  OutputOptions outputs;
  std::vector<std::string> paths;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (begin <= list.size() && !list.empty()) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return names;
}

ReplayOptions options_from(const ReplayArguments& a) {
  ReplayOptions options;
  if (!a.layers.empty()) {
    options.layers = IntList::parse(a.layers, "--layers");
  }
  if (!a.steps.empty()) {
    options.steps = IntList::parse(a.steps, "--steps");
  }
  options.stages = split(a.stages);
  options.tolerance_file = a.tolerances;
  options.repeat = a.repeat;
  options.threads = a.threads;
  options.mode = a.mode == "free" ? ReplayMode::free : a.mode == "lockstep" ? ReplayMode::lockstep : ReplayMode::both;
  return options;
}

ExitCode exit_code_of(ExitReason reason) {
  switch (reason) {
    case ExitReason::passed:
      return kPassed;
    case ExitReason::failed:
      return kFailed;
    case ExitReason::usage_or_input:
      return kUsageOrInput;
    case ExitReason::unavailable:
      return kUnavailable;
    case ExitReason::nothing_verified:
      return kNothingVerified;
    case ExitReason::internal:
      return kInternal;
  }
  return kInternal;
}

ReplayBackends make_backends(const ReplayArguments& a, RunReport& report) {
  ReplayBackends backends;
  backends.reference = make_backend(a.reference, a.threads);
  report.backends[a.reference] = backends.reference->description();
  for (const std::string& name : a.candidates) {
    try {
      backends.candidates.push_back(make_backend(name, a.threads));
      report.backends[name] = backends.candidates.back()->description();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unavailable) {
        throw;
      }
      report.problems.push_back({.kind = e.kind(), .message = e.what()});
    }
  }
  return backends;
}

/// The command that replays one fixture as a child does.
std::vector<std::string> child_command(const ReplayArguments& a, const std::vector<std::string>& candidates,
                                       const std::string& path) {
  std::vector<std::string> command{program_path(),
                                   "replay",
                                   "--child",
                                   "--reference",
                                   a.reference,
                                   "--mode",
                                   a.mode,
                                   "--repeat",
                                   std::to_string(a.repeat),
                                   "--threads",
                                   std::to_string(a.threads)};
  const auto pass_on = [&](const char* option, const std::string& value) {
    if (!value.empty()) {
      command.insert(command.end(), {option, value});
    }
  };
  for (const std::string& candidate : candidates) {
    pass_on("--candidate", candidate);
  }
  pass_on("--layers", a.layers);
  pass_on("--steps", a.steps);
  pass_on("--stages", a.stages);
  pass_on("--tolerances", a.tolerances);
  command.insert(command.end(), {"--", path});
  return command;
}

/// Replays the one fixture it is given and tells the parent process.
ExitCode run_child(const ReplayArguments& a) {
  die_with_parent();
  ReplaySender parent;
  try {
    ReplayBackends backends;
    backends.reference = make_backend(a.reference, a.threads);
    for (const std::string& name : a.candidates) {
      backends.candidates.push_back(make_backend(name, a.threads));
    }
    parent.done(replay_fixture(a.paths.at(0), backends, options_from(a), parent));
  } catch (const Error& e) {
    parent.failed(e);
  }
  return kPassed;
}

/// Replays fixtures one after the other, each in a process of its own where a candidate computes.
class FixtureRunner {
 public:
  FixtureRunner(const ReplayArguments& arguments, RunReport& report)
      : a_(arguments), options_(options_from(arguments)), backends_(make_backends(arguments, report)) {
    for (const auto& candidate : backends_.candidates) {
      candidates_.push_back(candidate->name());
      isolated_ = isolated_ || (candidate->computes() && !a_.in_process);
    }
  }

  FixtureReport run(const std::string& path, ReplayListener& listener) {
    return isolated_ ? replay_isolated(path,
                                       {.command = [&](const auto& names) { return child_command(a_, names, path); },
                                        .candidates = candidates_,
                                        .time_limit = std::chrono::seconds(a_.time_limit),
                                        .reference = a_.reference,
                                        .tolerance_file = a_.tolerances,
                                        .repeat = a_.repeat},
                                       listener)
                     : replay_fixture(path, backends_, options_, listener);
  }

 private:
  const ReplayArguments& a_;
  ReplayOptions options_;
  ReplayBackends backends_;
  std::vector<std::string> candidates_;  ///< that are available
  bool isolated_ = false;
};

/// The options of the run that a reader of its report may ask about.
std::map<std::string, std::string, std::less<>> settings_of(const ReplayArguments& a) {
  std::map<std::string, std::string, std::less<>> settings;
  const auto note = [&](const char* name, const std::string& value, const std::string& usual) {
    if (value != usual) {
      settings[name] = value;
    }
  };
  note("layers", a.layers, "");
  note("steps", a.steps, "");
  note("stages", a.stages, "");
  note("tolerances", a.tolerances, "");
  note("known failures", a.known_failures, "");
  note("shard", a.shard, "");
  note("repeat", std::to_string(a.repeat), "1");
  note("threads", std::to_string(a.threads), "0");
  return settings;
}

/// What the command reads; of a folder, every fixture in it, whatever --shard leaves to other runs.
std::vector<NamedFile> inputs_of(const ReplayArguments& a) {
  std::vector<NamedFile> inputs{{"--tolerances", a.tolerances}, {"--known-failures", a.known_failures}};
  for (const std::string& path : collect_fixtures(a.paths, Shard{})) {
    inputs.push_back({.role = "FIXTURE", .path = path});
  }
  return inputs;
}

/// A tensor that is compared with itself agrees, whatever it holds.
void refuse_recorded_against_itself(const ReplayArguments& a) {
  constexpr const char* kRecorded = "recorded";
  const bool both = std::find(a.candidates.begin(), a.candidates.end(), kRecorded) != a.candidates.end();
  if (a.reference == kRecorded && both) {
    throw Error(ErrorKind::usage, {.file = {},
                                   .object = "--candidate",
                                   .problem = "recorded tensors cannot be compared with themselves",
                                   .expected = "another backend than the reference",
                                   .found = kRecorded});
  }
}

ExitCode run_replay(ReplayArguments a) {
  if (a.candidates.empty()) {
    a.candidates.push_back(default_candidate());
  }
  if (a.child) {
    return run_child(a);
  }
  refuse_recorded_against_itself(a);
  check_files(inputs_of(a), files_of(a.outputs));
  const ReplayOptions options = options_from(a);
  if (!a.tolerances.empty()) {
    static_cast<void>(Tolerances::from_file(a.tolerances, family_named(ModelConfig{}.family)));
  }
  const Shard shard = a.shard.empty() ? Shard{} : Shard::parse(a.shard);
  RunReport report{.tool_version = version_text(),
                   .reference = a.reference,
                   .candidates = a.candidates,
                   .mode = a.mode,
                   .fixtures = {},
                   .unanswered = {},
                   .problems = {}};
  report.settings = settings_of(a);
  FixtureRunner runner(a, report);
  const std::vector<std::string> paths = collect_fixtures(a.paths, shard);
  std::optional<ProgressBar> progress(std::in_place, paths.size(), a.outputs);
  for (const std::string& path : paths) {
    try {
      report.fixtures.push_back(runner.run(path, *progress));
      keep_worst_details(report);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unavailable) {
        throw;
      }
      // A GPU too small for one fixture says nothing about the next.
      report.problems.push_back({.kind = e.kind(), .message = e.in_file(path).what()});
    }
    progress->finish_fixture();
  }
  progress.reset();
  report.unanswered = unanswered(report, options);
  const std::string notes = a.known_failures.empty() ? "" : apply_known_failures(report, a.known_failures);
  write_outputs(report, a.outputs);
  print_report(report, a.outputs, notes);
  return exit_code_of(exit_reason(report));
}

}  // namespace

void add_replay(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command = program.add_subcommand(
      "replay", "Run fixtures through a reference and its candidates and compare every stage both sides have");
  const auto a = std::make_shared<ReplayArguments>();
  command->add_option("--reference", a->reference, "backend to compare with")->capture_default_str();
  command
      ->add_option("--candidate", a->candidates,
                   "backend to judge; repeatable (default: cuda where a GPU is usable, else recorded)")
      ->allow_extra_args(false);
  command
      ->add_option("--mode", a->mode,
                   "free: the candidate continues from its own results; lockstep: from the reference's; both: two runs")
      ->check(CLI::IsMember({"free", "lockstep", "both"}))
      ->capture_default_str();
  add_text_option(*command, "--layers", a->layers, "layer_ids to judge, such as 0,2-5");
  add_text_option(*command, "--steps", a->steps, "steps to judge, by index, such as 0,2-5");
  add_text_option(*command, "--stages", a->stages, "stages to judge, by name, such as q,idx");
  add_text_option(*command, "--tolerances", a->tolerances, "TOML file that overrides built-in tolerances");
  add_text_option(*command, "--known-failures", a->known_failures,
                  "TOML list of failures that are excused until a date");
  add_output_options(*command, a->outputs);
  add_text_option(*command, "--shard", a->shard, "judge only part I of N of the fixtures: I/N");
  command
      ->add_option("--repeat", a->repeat,
                   "run each candidate N times in free mode; results that change between runs fail")
      ->check(whole_number(1, kMostRepeats))
      ->capture_default_str();
  command
      ->add_option("--time-limit", a->time_limit,
                   "seconds that one call of a candidate may take before it counts as crashed; 0: no limit")
      ->check(whole_number(0, kMostSeconds))
      ->capture_default_str();
  command->add_flag("--in-process", a->in_process,
                    "run the candidates inside this process, for debuggers and sanitizers: a crash then ends the run");
  command->add_flag("--child", a->child)->group("");
  add_threads_option(*command, a->threads);
  command->add_option("paths", a->paths, "fixture files and folders")->required();
  command->callback([a, &exit_code] { exit_code = run_replay(*a); });
}

}  // namespace attndiff::cli
