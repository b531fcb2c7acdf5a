#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "harness/cli/commands.h"
#include "harness/mutants/run_mutants.h"
#include "harness/version.h"
#include "reports/atomic_file.h"

namespace attndiff::cli {
namespace {

struct MutantsArguments {
  bool list = false;
  std::vector<std::string> only;
  std::string json;
  int threads = 0;
};

ExitCode list_mutants() {
  for (const Mutant& m : mutant_catalogue()) {
    fmt::print("{:<36} {:<10} {:<12} {:<19} {}\n", m.name, name_of(m.kind), m.stage.empty() ? "-" : m.stage, m.fixture,
               m.description);
  }
  return kPassed;
}

std::vector<Mutant> chosen(const std::vector<std::string>& names) {
  std::vector<Mutant> mutants;
  const auto& all = mutant_catalogue();
  if (names.empty()) {
    return all;
  }
  for (const std::string& name : names) {
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

ExitCode run_catalogue(const MutantsArguments& a) {
  if (a.list) {
    return list_mutants();
  }
  MutantFixtures fixtures;
  std::vector<MutantResult> results;
  for (const Mutant& mutant : chosen(a.only)) {
    results.push_back(run_mutant(mutant, fixtures, a.threads));
  }
  fmt::print("{}", mutant_matrix(results));
  if (!a.json.empty()) {
    write_atomically(a.json, results_json(results));
  }
  const bool all_as_due = std::all_of(results.begin(), results.end(), [](const auto& r) { return r.as_due(); });
  return all_as_due ? kPassed : kFailed;
}

}  // namespace

void add_mutants(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command = program.add_subcommand(
      "mutants", "Does the gate catch known faults? Runs each named fault and control on the CPU");
  const auto a = std::make_shared<MutantsArguments>();
  command->add_flag("--list", a->list, "list the mutants without running any");
  command->add_option("--only", a->only, "run this mutant; repeatable")->allow_extra_args(false);
  command->add_option("--json", a->json, "write the matrix, schema attndiff-mutants/1");
  command->add_option("--threads", a->threads, "CPU threads; 0 takes the machine's; results do not depend on it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->callback([a, &exit_code] { exit_code = run_catalogue(*a); });
}

}  // namespace attndiff::cli
