#include "harness/run/replay.h"

#include <fmt/core.h>

#include <memory>

#include "harness/backends/registry.h"
#include "harness/cli/commands.h"
#include "harness/run/collect.h"
#include "harness/version.h"
#include "reference/contract/families.h"
#include "reports/json.h"
#include "reports/table.h"

namespace attndiff::cli {
namespace {

struct ReplayArguments {
  std::string reference = "cpu";
  std::vector<std::string> candidates;
  std::string mode = "both";
  std::string layers;
  std::string steps;
  std::string stages;
  std::string tolerances;
  std::string known_failures;
  std::string json;
  std::string shard;
  int threads = 0;
  bool verbose = false;
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
  for (const std::string& name : a.candidates) {
    try {
      backends.candidates.push_back(make_backend(name, a.threads));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unavailable) {
        throw;
      }
      report.problems.push_back({.kind = e.kind(), .message = e.what()});
    }
  }
  return backends;
}

ExitCode run_replay(ReplayArguments a) {
  if (a.candidates.empty()) {
    a.candidates.push_back(default_candidate());
  }
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
  const ReplayBackends backends = make_backends(a, report);
  for (const std::string& path : collect_fixtures(a.paths, shard)) {
    try {
      report.fixtures.push_back(replay_fixture(path, backends, options));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unavailable) {
        throw;
      }
      // A GPU too small for one fixture says nothing about the next.
      report.problems.push_back({.kind = e.kind(), .message = e.in_file(path).what()});
    }
  }
  report.unanswered = unanswered(report, options);
  const std::string notes = a.known_failures.empty() ? "" : apply_known_failures(report, a.known_failures);
  if (!a.json.empty()) {
    try {
      write_json(report, a.json);
    } catch (const Error& e) {
      report.problems.push_back({.kind = e.kind(), .message = e.what()});
    }
  }
  fmt::print("{}{}", notes, table_text(report, {.verbose = a.verbose}));
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
  command->add_option("--layers", a->layers, "layer_ids to judge, such as 0,2-5");
  command->add_option("--steps", a->steps, "steps to judge, by index, such as 0,2-5");
  command->add_option("--stages", a->stages, "stages to judge, by name, such as q,idx");
  command->add_option("--tolerances", a->tolerances, "TOML file that overrides built-in tolerances");
  command->add_option("--known-failures", a->known_failures, "TOML list of failures that are excused until a date");
  command->add_option("--json", a->json, "write the report, schema attndiff-report/1");
  command->add_option("--shard", a->shard, "judge only part I of N of the fixtures: I/N");
  command->add_option("--threads", a->threads, "CPU threads; 0 takes the machine's; results do not depend on it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("-v,--verbose", a->verbose, "a line for every comparison");
  command->add_option("paths", a->paths, "fixture files and folders")->required();
  command->callback([a, &exit_code] { exit_code = run_replay(*a); });
}

}  // namespace attndiff::cli
