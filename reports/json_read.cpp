#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/files/text_file.h"
#include "reference/contract/error.h"
#include "reports/json.h"
#include "reports/json_node.h"

namespace attndiff {
namespace {

using Json = nlohmann::ordered_json;

constexpr ErrorKind kKinds[] = {ErrorKind::usage,       ErrorKind::input,  ErrorKind::refused,
                                ErrorKind::unavailable, ErrorKind::output, ErrorKind::internal};

Verdict verdict_of(const JsonNode& node) {
  const std::optional<Verdict> verdict = verdict_named(node.text());
  if (!verdict.has_value()) {
    node.refuse("a verdict");
  }
  return *verdict;
}

std::optional<double> optional_figure(const JsonNode& node, const std::string& key) {
  return node.find(key).has_value() ? std::optional(node.figure(key)) : std::nullopt;
}

std::optional<std::string> optional_text(const JsonNode& node, const std::string& key) {
  const auto member = node.find(key);
  return member.has_value() ? std::optional(member->text()) : std::nullopt;
}

ComparedElement element_of(const JsonNode& node) {
  const auto flat = node.find("flat");
  return {.flat = flat.has_value() ? flat->count() : 0,
          .index = node.at("index").counts(),
          .reference = node.value("reference"),
          .candidate = node.value("candidate"),
          .reference_bits = optional_text(node, "reference_bits").value_or(""),
          .candidate_bits = optional_text(node, "candidate_bits").value_or("")};
}

ErrorHistogram histogram_of(const JsonNode& node) {
  return {.unit = node.at("unit").text(),
          .equal = node.at("equal").count(),
          .nonfinite = node.at("nonfinite").count(),
          .below = node.at("below").counts(),
          .above = node.at("above").counts()};
}

HeatMap map_of(const JsonNode& node) {
  return {.row_axis = node.at("row_axis").text(),
          .column_axis = node.at("column_axis").text(),
          .row_extent = node.at("row_extent").count(),
          .column_extent = node.at("column_extent").count(),
          .row_tile = node.at("row_tile").count(),
          .column_tile = node.at("column_tile").count(),
          .rows = node.at("rows").texts()};
}

DisputedRow disputed_of(const JsonNode& node) {
  DisputedRow row;
  row.row = node.at("row").count();
  row.differing = node.at("differing").count();
  row.reference_margin = optional_figure(node, "reference_margin");
  row.candidate_margin = optional_figure(node, "candidate_margin");
  node.at("positions").for_each_element([&](const JsonNode& p) {
    row.positions.push_back({.position = p.at("position").count(),
                             .by_reference = p.at("by_reference").truth(),
                             .by_candidate = p.at("by_candidate").truth(),
                             .reference_score = optional_figure(p, "reference_score"),
                             .candidate_score = optional_figure(p, "candidate_score")});
  });
  return row;
}

std::shared_ptr<const ComparisonDetail> detail_of(const JsonNode& node) {
  auto detail = std::make_shared<ComparisonDetail>();
  detail->shape = node.at("shape").counts();
  detail->axes = node.at("axes").texts();
  detail->histogram = histogram_of(node.at("histogram"));
  node.at("maps").for_each_element([&](const JsonNode& map) { detail->maps.push_back(map_of(map)); });
  node.at("worst").for_each_element([&](const JsonNode& e) { detail->worst.push_back(element_of(e)); });
  detail->disputed_rows = node.at("disputed_rows").count();
  node.at("disputed").for_each_element([&](const JsonNode& row) { detail->disputed.push_back(disputed_of(row)); });
  return detail;
}

Comparison result_of(const JsonNode& node) {
  Comparison r;
  r.verdict = verdict_of(node.at("verdict"));
  r.count = node.at("count").count();
  const auto counted = node.find("counted");
  r.counted = counted.has_value() ? counted->truth() : r.count > 0;
  r.mismatches = node.at("mismatches").count();
  r.judged_differences = node.at("judged_differences").count();
  r.allowed_differences = node.at("allowed_differences").count();
  r.violations = node.at("violations").count();
  r.nonfinite_mismatches = node.at("nonfinite_mismatches").count();
  r.both_nan = node.at("both_nan").count();
  r.max_abs = node.figure("max_abs");
  r.max_ulp = node.figure("max_ulp");
  r.rel_l2 = node.figure("rel_l2");
  r.bound_ratio = optional_figure(node, "bound_ratio");
  if (const auto row = node.find("worst_row"); row.has_value()) {
    r.worst_row = ComparedRow{.index = row->at("index").counts(), .rel_l2 = row->figure("rel_l2")};
  }
  if (const auto worst = node.find("worst"); worst.has_value()) {
    r.worst = element_of(*worst);
  }
  r.reason = node.at("reason").text();
  return r;
}

ComparisonRecord comparison_of(const JsonNode& node) {
  ComparisonRecord c;
  c.step = static_cast<std::size_t>(node.at("step").count());
  c.start_pos = node.at("start_pos").count();
  c.tokens = node.at("tokens").count();
  c.layer_id = node.at("layer_id").count();
  c.layer_kind = node.at("layer_kind").text();
  c.candidate = node.at("candidate").text();
  c.mode = node.at("mode").text();
  c.stage = node.at("stage").text();
  c.result = result_of(node);
  c.tolerance = node.at("tolerance").text();
  c.repro = node.at("repro").text();
  c.location = optional_text(node, "location");
  c.known_failure = optional_text(node, "known_failure");
  if (const auto detail = node.find("detail"); detail.has_value()) {
    c.detail = detail_of(*detail);
  }
  return c;
}

FixtureReport fixture_of(const JsonNode& node) {
  FixtureReport f;
  f.path = node.at("path").text();
  f.verdict = verdict_of(node.at("verdict"));
  f.error = optional_text(node, "error");
  node.at("coverage").for_each_member([&](const std::string& key, const JsonNode& n) { f.coverage[key] = n.count(); });
  f.uncovered = node.at("uncovered").texts();
  if (const auto timings = node.find("timings"); timings.has_value()) {
    timings->for_each_element([&](const JsonNode& t) {
      Timing timing{.backend = t.at("backend").text(), .mode = t.at("mode").text(), .seconds = {}};
      t.at("seconds").for_each_element([&](const JsonNode& s) { timing.seconds.push_back(s.number()); });
      f.timings.push_back(std::move(timing));
    });
  }
  node.at("comparisons").for_each_element([&](const JsonNode& c) { f.comparisons.push_back(comparison_of(c)); });
  return f;
}

/// The kind of a problem; where only the exit reason is told, a kind of that reason.
RunProblem problem_of(const JsonNode& node) {
  const auto kind = node.find("kind");
  const JsonNode told = kind.has_value() ? *kind : node.at("exit_reason");
  const std::string word = told.text();
  for (const ErrorKind k : kKinds) {
    if (word == (kind.has_value() ? name_of(k) : name_of(reason_of(k)))) {
      return {.kind = k, .message = node.at("message").text()};
    }
  }
  told.refuse(kind.has_value() ? "a kind of error" : "an exit reason");
}

std::map<std::string, std::string, std::less<>> texts_of(const JsonNode& node, const std::string& key) {
  std::map<std::string, std::string, std::less<>> texts;
  if (const auto member = node.find(key); member.has_value()) {
    member->for_each_member([&](const std::string& name, const JsonNode& text) { texts[name] = text.text(); });
  }
  return texts;
}

RunReport report_of(const JsonNode& node) {
  const JsonNode schema = node.at("schema");
  if (schema.text() != kReportSchema) {
    schema.refuse(kReportSchema);
  }
  RunReport report;
  report.tool_version = node.at("tool_version").text();
  report.backends = texts_of(node, "backends");
  report.reference = node.at("reference").text();
  report.candidates = node.at("candidates").texts();
  report.mode = node.at("mode").text();
  report.settings = texts_of(node, "settings");
  node.at("fixtures").for_each_element([&](const JsonNode& f) { report.fixtures.push_back(fixture_of(f)); });
  report.unanswered = node.at("unanswered").texts();
  node.at("problems").for_each_element([&](const JsonNode& p) { report.problems.push_back(problem_of(p)); });
  return report;
}

}  // namespace

FixtureReport fixture_report_from_json(const Json& json, const std::string& source, const std::string& object) {
  return fixture_of(JsonNode(json, source, object));
}

RunReport parse_report(std::string_view text, const std::string& source) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& e) {
    throw Error(ErrorKind::input, {.file = source,
                                   .object = fmt::format("byte {}", e.byte),
                                   .problem = "not JSON",
                                   .expected = "a report written by --json",
                                   .found = {}});
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::input, {.file = source,
                                   .object = {},
                                   .problem = "not JSON that can be held",
                                   .expected = "a report written by --json",
                                   .found = e.what()});
  }
  const std::string root;
  return report_of(JsonNode(json, source, root));
}

RunReport read_report(const std::string& path) {
  return parse_report(read_text_file(path, {.what = "a report written by --json", .megabytes = 1000}), path);
}

}  // namespace attndiff
