#include "reports/json.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "reports/atomic_file.h"
#include "reports/json_parts.h"

namespace attndiff {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of_nonfinite(double value) noexcept { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

void put_figure(Json& object, const std::string& key, double value) {
  if (std::isfinite(value)) {
    object[key] = value;
    return;
  }
  object[key] = name_of_nonfinite(value);
  object[key + "_bits"] = fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value));
}

void put_figure(Json& object, const std::string& key, const std::optional<double>& value) {
  if (value.has_value()) {
    put_figure(object, key, *value);
  }
}

void put_value(Json& object, const std::string& key, double value, const std::string& bits) {
  object[key] = std::isfinite(value) ? Json(value) : Json(name_of_nonfinite(value));
  object[key + "_bits"] = bits;
}

Json histogram_json(const ErrorHistogram& histogram) {
  return {{"unit", histogram.unit},
          {"equal", histogram.equal},
          {"nonfinite", histogram.nonfinite},
          {"below", histogram.below},
          {"above", histogram.above}};
}

Json map_json(const HeatMap& map) {
  return {{"row_axis", map.row_axis},
          {"column_axis", map.column_axis},
          {"row_extent", map.row_extent},
          {"column_extent", map.column_extent},
          {"row_tile", map.row_tile},
          {"column_tile", map.column_tile},
          {"rows", map.rows}};
}

Json disputed_json(const DisputedRow& row) {
  Json j;
  j["row"] = row.row;
  j["differing"] = row.differing;
  put_figure(j, "reference_margin", row.reference_margin);
  put_figure(j, "candidate_margin", row.candidate_margin);
  j["positions"] = Json::array();
  for (const DisputedPosition& p : row.positions) {
    Json position;
    position["position"] = p.position;
    position["by_reference"] = p.by_reference;
    position["by_candidate"] = p.by_candidate;
    put_figure(position, "reference_score", p.reference_score);
    put_figure(position, "candidate_score", p.candidate_score);
    j["positions"].push_back(std::move(position));
  }
  return j;
}

void put_result(Json& j, const Comparison& r) {
  j["verdict"] = name_of(r.verdict);
  j["counted"] = r.counted;
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
  put_figure(j, "bound_ratio", r.bound_ratio);
  if (r.worst_row.has_value()) {
    Json row;
    row["index"] = r.worst_row->index;
    put_figure(row, "rel_l2", r.worst_row->rel_l2);
    j["worst_row"] = std::move(row);
  }
  j["worst"] = r.worst.has_value() ? element_json(*r.worst) : Json(nullptr);
}

Json comparison_json(const ComparisonRecord& c) {
  Json j;
  j["step"] = c.step;
  j["start_pos"] = c.start_pos;
  j["tokens"] = c.tokens;
  j["layer_id"] = c.layer_id;
  j["layer_kind"] = c.layer_kind;
  j["candidate"] = c.candidate;
  j["mode"] = c.mode;
  j["stage"] = c.stage;
  put_result(j, c.result);
  j["tolerance"] = c.tolerance;
  j["reason"] = c.result.reason;
  j["repro"] = c.repro;
  if (c.location.has_value()) {
    j["location"] = *c.location;
  }
  if (c.known_failure.has_value()) {
    j["known_failure"] = *c.known_failure;
  }
  if (c.detail != nullptr) {
    j["detail"] = detail_json(*c.detail);
  }
  return j;
}

Json timings_json(const std::vector<Timing>& timings) {
  Json j = Json::array();
  for (const Timing& timing : timings) {
    j.push_back({{"backend", timing.backend}, {"mode", timing.mode}, {"seconds", timing.seconds}});
  }
  return j;
}

Json texts_json(const std::map<std::string, std::string, std::less<>>& texts) {
  Json j = Json::object();
  for (const auto& [key, text] : texts) {
    j[key] = text;
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

Json element_json(const ComparedElement& element) {
  Json j;
  j["index"] = element.index;
  j["flat"] = element.flat;
  put_value(j, "reference", element.reference, element.reference_bits);
  put_value(j, "candidate", element.candidate, element.candidate_bits);
  return j;
}

Json detail_json(const ComparisonDetail& detail) {
  Json j;
  j["shape"] = detail.shape;
  j["axes"] = detail.axes;
  j["histogram"] = histogram_json(detail.histogram);
  j["maps"] = Json::array();
  for (const HeatMap& map : detail.maps) {
    j["maps"].push_back(map_json(map));
  }
  j["worst"] = Json::array();
  for (const ComparedElement& element : detail.worst) {
    j["worst"].push_back(element_json(element));
  }
  j["disputed_rows"] = detail.disputed_rows;
  j["disputed"] = Json::array();
  for (const DisputedRow& row : detail.disputed) {
    j["disputed"].push_back(disputed_json(row));
  }
  return j;
}

Json to_json(const FixtureReport& fixture) {
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
  j["timings"] = timings_json(fixture.timings);
  j["comparisons"] = Json::array();
  for (const ComparisonRecord& c : fixture.comparisons) {
    j["comparisons"].push_back(comparison_json(c));
  }
  return j;
}

std::string json_text(const RunReport& report) {
  Json j;
  j["schema"] = kReportSchema;
  j["tool_version"] = report.tool_version;
  j["backends"] = texts_json(report.backends);
  j["reference"] = report.reference;
  j["candidates"] = report.candidates;
  j["mode"] = report.mode;
  j["settings"] = texts_json(report.settings);
  j["fixtures"] = Json::array();
  for (const FixtureReport& fixture : report.fixtures) {
    j["fixtures"].push_back(to_json(fixture));
  }
  j["unanswered"] = report.unanswered;
  j["problems"] = Json::array();
  for (const RunProblem& problem : report.problems) {
    j["problems"].push_back({{"exit_reason", name_of(reason_of(problem.kind))},
                             {"kind", name_of(problem.kind)},
                             {"message", problem.message}});
  }
  j["totals"] = totals_json(report);
  constexpr int kIndent = 1;
  return j.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_json(const RunReport& report, const std::string& path) { write_atomically(path, json_text(report)); }

}  // namespace attndiff
