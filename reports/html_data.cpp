#include "reports/html_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reports/json.h"
#include "reports/json_parts.h"
#include "reports/stage_order.h"
#include "reports/words.h"

namespace attndiff {
namespace {

using Json = nlohmann::ordered_json;

/// A list in which each entry stands once.
class Names {
 public:
  std::size_t number_of(const std::string& name) {
    const auto [known, is_new] = numbers_.try_emplace(name, names_.size());
    if (is_new) {
      names_.push_back(name);
    }
    return known->second;
  }
  [[nodiscard]] const std::vector<std::string>& all() const noexcept { return names_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
};

/// Four digits are enough to look at, and short.
Json short_number(double value) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  }
  const double rounded = std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
  return rounded == std::floor(rounded) && std::fabs(rounded) < 1e9 ? Json(static_cast<std::int64_t>(rounded))
                                                                    : Json(rounded);
}

/// A repro command with {layer}, {step} and {stage} in place of the comparison's own; empty where it is not made so.
std::string command_pattern(const ComparisonRecord& c) {
  const std::string own = fmt::format(" --layers {} --steps {} --stages {} ", c.layer_id, c.step, c.stage);
  const std::size_t at = c.repro.find(own);
  return at == std::string::npos ? std::string()
                                 : c.repro.substr(0, at) + " --layers {layer} --steps {step} --stages {stage} " +
                                       c.repro.substr(at + own.size());
}

class PageData {
 public:
  explicit PageData(const RunReport& report) : report_(report), stages_(stage_order(report)) {
    for (const char* column : {"run", "step", "layer", "stage", "verdict", "ratio", "count", "mismatches", "abs", "ulp",
                               "l2", "tolerance"}) {
      cells_[column] = Json::array();
    }
  }

  Json build() {
    for (std::size_t f = 0; f < report_.fixtures.size(); ++f) {
      add_fixture(f);
    }
    Json j;
    j["reference"] = report_.reference;
    j["candidates"] = report_.candidates;
    j["mode"] = report_.mode;
    j["version"] = report_.tool_version;
    j["settings"] = Json::object();
    for (const auto& [key, text] : report_.settings) {
      j["settings"][key] = text;
    }
    j["backends"] = Json::object();
    for (const auto& [key, text] : report_.backends) {
      j["backends"][key] = text;
    }
    j["errors"] = error_lines(report_);
    j["verdicts"] = Json::array();
    for (const VerdictInfo& v : verdicts()) {
      const char* effect = v.effect == VerdictEffect::none        ? "none"
                           : v.effect == VerdictEffect::fails_run ? "fails"
                                                                  : "input";
      j["verdicts"].push_back({{"name", v.name}, {"effect", effect}, {"definition", v.definition}});
    }
    j["stages"] = stages_;
    j["layers"] = std::move(layers_);
    j["fixtures"] = std::move(fixtures_);
    j["runs"] = std::move(runs_);
    j["texts"] = texts_.all();
    j["cells"] = std::move(cells_);
    j["more"] = std::move(more_);
    return j;
  }

 private:
  void add_fixture(std::size_t f) {
    const FixtureReport& fixture = report_.fixtures[f];
    Json j = to_json({.path = fixture.path,
                      .verdict = fixture.verdict,
                      .error = {},
                      .comparisons = {},
                      .coverage = fixture.coverage,
                      .uncovered = fixture.uncovered,
                      .timings = fixture.timings});
    j.erase("comparisons");
    j["steps"] = Json::array();
    step_numbers_.clear();
    for (const ComparisonRecord& c : fixture.comparisons) {
      add_comparison(f, c, j["steps"]);
    }
    fixtures_.push_back(std::move(j));
  }

  void add_comparison(std::size_t fixture, const ComparisonRecord& c, Json& steps) {
    const auto [step, new_step] = step_numbers_.try_emplace(c.step, step_numbers_.size());
    if (new_step) {
      steps.push_back({{"index", c.step}, {"start", c.start_pos}, {"tokens", c.tokens}});
    }
    const Comparison& r = c.result;
    cells_["run"].push_back(run_of(fixture, c));
    cells_["step"].push_back(step->second);
    cells_["layer"].push_back(layer_of(c));
    cells_["stage"].push_back(std::find(stages_.begin(), stages_.end(), c.stage) - stages_.begin());
    cells_["verdict"].push_back(static_cast<int>(r.verdict));
    cells_["ratio"].push_back(r.bound_ratio.has_value() ? short_number(*r.bound_ratio) : Json(nullptr));
    cells_["count"].push_back(r.count);
    cells_["mismatches"].push_back(r.mismatches);
    cells_["abs"].push_back(short_number(r.max_abs));
    cells_["ulp"].push_back(short_number(r.max_ulp));
    cells_["l2"].push_back(short_number(r.rel_l2));
    cells_["tolerance"].push_back(texts_.number_of(c.tolerance));
    if (Json extra = extra_of(c); !extra.empty()) {
      more_[std::to_string(number_)] = std::move(extra);
    }
    ++number_;
  }

  std::size_t run_of(std::size_t fixture, const ComparisonRecord& c) {
    const auto [run, is_new] = run_numbers_.try_emplace({fixture, c.candidate, c.mode}, runs_.size());
    if (is_new) {
      runs_.push_back({{"fixture", fixture},
                       {"candidate", c.candidate},
                       {"mode", c.mode},
                       {"repro", texts_.number_of(command_pattern(c))}});
      patterns_.push_back(command_pattern(c));
    }
    this_run_ = run->second;
    return run->second;
  }

  std::size_t layer_of(const ComparisonRecord& c) {
    const auto [layer, is_new] = layer_numbers_.try_emplace({c.layer_id, c.layer_kind}, layers_.size());
    if (is_new) {
      layers_.push_back({{"id", c.layer_id}, {"kind", c.layer_kind}});
    }
    return layer->second;
  }

  /// What the columns do not have.
  [[nodiscard]] Json extra_of(const ComparisonRecord& c) const {
    Json j = Json::object();
    if (command_pattern(c) != patterns_[this_run_] || patterns_[this_run_].empty()) {
      j["repro"] = c.repro;
    }
    if (c.result.verdict != Verdict::pass) {
      j["reason"] = c.result.reason;
      j["violations"] = c.result.violations;
      if (c.result.worst.has_value()) {
        j["worst"] = element_json(*c.result.worst);
      }
    }
    if (c.location.has_value()) {
      j["location"] = *c.location;
    }
    if (c.known_failure.has_value()) {
      j["known"] = *c.known_failure;
    }
    if (c.detail != nullptr) {
      j["reason"] = c.result.reason;
      j["violations"] = c.result.violations;
      j["detail"] = detail_json(*c.detail);
    }
    return j;
  }

  const RunReport& report_;
  std::vector<std::string> stages_;
  Names texts_;
  std::map<std::tuple<std::size_t, std::string, std::string>, std::size_t> run_numbers_;
  std::map<std::pair<std::int64_t, std::string>, std::size_t> layer_numbers_;
  std::map<std::size_t, std::size_t> step_numbers_;  ///< of the fixture in hand
  std::vector<std::string> patterns_;                ///< repro command of each run
  std::size_t this_run_ = 0;
  std::size_t number_ = 0;
  Json layers_ = Json::array();
  Json fixtures_ = Json::array();
  Json runs_ = Json::array();
  Json cells_ = Json::object();
  Json more_ = Json::object();
};

}  // namespace

Json html_data(const RunReport& report) { return PageData(report).build(); }

}  // namespace attndiff
