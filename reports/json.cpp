#include "reports/json.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "reports/atomic_file.h"

namespace attndiff {
namespace {

using Json = nlohmann::ordered_json;

void put_number(Json& object, const std::string& key, double value, const std::string& bits) {
  if (std::isfinite(value)) {
    object[key] = value;
    return;
  }
  object[key] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  object[key + "_bits"] = bits;
}

void put_figure(Json& object, const std::string& key, double value) {
  put_number(object, key, value, fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value)));
}

Json worst_json(const std::optional<ComparedElement>& worst) {
  if (!worst.has_value()) {
    return nullptr;
  }
  Json j;
  j["index"] = worst->index;
  put_number(j, "reference", worst->reference, worst->reference_bits);
  put_number(j, "candidate", worst->candidate, worst->candidate_bits);
  return j;
}

Json comparison_json(const ComparisonRecord& c) {
  const Comparison& r = c.result;
  Json j;
  j["step"] = c.step;
  j["start_pos"] = c.start_pos;
  j["tokens"] = c.tokens;
  j["layer_id"] = c.layer_id;
  j["layer_kind"] = c.layer_kind;
  j["candidate"] = c.candidate;
  j["mode"] = c.mode;
  j["stage"] = c.stage;
  j["verdict"] = name_of(r.verdict);
  j["count"] = r.count;
  j["mismatches"] = r.mismatches;
  j["judged_differences"] = r.judged_differences;
  j["allowed_differences"] = r.allowed_differences;
  j["violations"] = r.violations;
  j["nonfinite_mismatches"] = r.nonfinite_mismatches;
  j["both_nan"] = r.both_nan;
  put_figure(j, "max_abs", r.max_abs);
  put_figure(j, "max_ulp", r.max_ulp);
  put_figure(j, "rel_l2", r.rel_l2);
  if (r.bound_ratio.has_value()) {
    put_figure(j, "bound_ratio", *r.bound_ratio);
  }
  if (r.worst_row.has_value()) {
    Json row;
    row["index"] = r.worst_row->index;
    put_figure(row, "rel_l2", r.worst_row->rel_l2);
    j["worst_row"] = std::move(row);
  }
  j["worst"] = worst_json(r.worst);
  j["tolerance"] = c.tolerance;
  j["reason"] = r.reason;
  j["repro"] = c.repro;
  if (c.location.has_value()) {
    j["location"] = *c.location;
  }
  if (c.known_failure.has_value()) {
    j["known_failure"] = *c.known_failure;
  }
  return j;
}

Json fixture_json(const FixtureReport& fixture) {
  Json j;
  j["path"] = fixture.path;
  j["verdict"] = name_of(fixture.verdict);
  if (fixture.error.has_value()) {
    j["error"] = *fixture.error;
  }
  j["coverage"] = Json::object();
  for (const auto& [counter, count] : fixture.coverage) {
    j["coverage"][counter] = count;
  }
  j["uncovered"] = fixture.uncovered;
  j["comparisons"] = Json::array();
  for (const ComparisonRecord& c : fixture.comparisons) {
    j["comparisons"].push_back(comparison_json(c));
  }
  return j;
}

Json totals_json(const RunReport& report) {
  const Totals totals = totals_of(report);
  Json j;
  j["exit_reason"] = name_of(exit_reason(report));
  j["comparisons"] = totals.comparisons;
  j["elements"] = totals.elements;
  for (const VerdictInfo& v : verdicts()) {
    j["by_verdict"][std::string(v.name)] = totals.by_verdict.at(static_cast<std::size_t>(v.verdict));
  }
  for (std::size_t i = 0; i < kExitReasonCount; ++i) {
    j["by_exit_reason"][std::string(name_of(static_cast<ExitReason>(i)))] = totals.by_exit_reason.at(i);
  }
  return j;
}

}  // namespace

std::string json_text(const RunReport& report) {
  Json j;
  j["schema"] = kReportSchema;
  j["tool_version"] = report.tool_version;
  j["reference"] = report.reference;
  j["candidates"] = report.candidates;
  j["mode"] = report.mode;
  j["fixtures"] = Json::array();
  for (const FixtureReport& fixture : report.fixtures) {
    j["fixtures"].push_back(fixture_json(fixture));
  }
  j["unanswered"] = report.unanswered;
  j["problems"] = Json::array();
  for (const RunProblem& problem : report.problems) {
    j["problems"].push_back({{"exit_reason", name_of(reason_of(problem.kind))}, {"message", problem.message}});
  }
  j["totals"] = totals_json(report);
  constexpr int kIndent = 1;
  return j.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_json(const RunReport& report, const std::string& path) { write_atomically(path, json_text(report)); }

}  // namespace attndiff
