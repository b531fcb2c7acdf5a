#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "harness/compare/grid.h"
#include "harness/compare/tolerance.h"
#include "harness/files/text_file.h"
#include "reference/contract/error.h"

namespace attndiff {

/// Reads one TOML file into tolerances that may already hold the built-in ones.
class ToleranceFile {
 public:
  ToleranceFile(std::string source, const ModelFamily& family) : source_(std::move(source)), family_(family) {}

  void read(std::string_view toml, Tolerances& into) const {
    const toml::table root = parsed(toml);
    for (const auto& [key, node] : root) {
      require_known(std::string(key.str()), "", {"rules", "stages"});
    }
    if (const toml::node* rules = root.get("rules")) {
      for (const auto& [name, node] : table_of(*rules, "rules")) {
        const std::string path = "rules." + std::string(name.str());
        into.rules_.insert_or_assign(std::string(name.str()), rule(table_of(node, path), path));
      }
    }
    if (const toml::node* stages = root.get("stages")) {
      for (const auto& [name, node] : table_of(*stages, "stages")) {
        read_stage(std::string(name.str()), node, into);
      }
    }
  }

 private:
  [[noreturn]] void refuse(std::string key, std::string problem, std::string expected, std::string found) const {
    throw Error(ErrorKind::input, {.file = source_,
                                   .object = std::move(key),
                                   .problem = std::move(problem),
                                   .expected = std::move(expected),
                                   .found = std::move(found)});
  }

  [[nodiscard]] toml::table parsed(std::string_view toml) const {
    try {
      return toml::parse(toml);
    } catch (const toml::parse_error& e) {
      const auto at = e.source().begin;
      refuse(fmt::format("line {}, column {}", at.line, at.column), "not TOML", "a tolerance file",
             std::string(e.description()));
    }
  }

  [[nodiscard]] const toml::table& table_of(const toml::node& node, const std::string& path) const {
    if (const toml::table* table = node.as_table()) {
      return *table;
    }
    refuse(path, "wrong type", "a table", type_of(node));
  }

  [[nodiscard]] static std::string type_of(const toml::node& node) {
    std::ostringstream text;
    text << node.type();
    return text.str();
  }

  void require_known(const std::string& key, const std::string& path, const std::vector<std::string>& known) const {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      refuse(path.empty() ? key : path + "." + key, "unknown key", fmt::format("one of {}", fmt::join(known, ", ")),
             key);
    }
  }

  [[nodiscard]] std::string text_at(const toml::table& table, std::string_view key, const std::string& path) const {
    const toml::node* node = table.get(key);
    const std::string at = path + "." + std::string(key);
    if (node == nullptr) {
      refuse(at, "missing", "a string", "nothing");
    }
    const auto text = node->value_exact<std::string>();
    if (!text.has_value()) {
      refuse(at, "wrong type", "a string", type_of(*node));
    }
    if (text->find_first_not_of(" \t\n\r") == std::string::npos) {
      refuse(at, "empty", "a sentence that says why", "\"\"");
    }
    return *text;
  }

  /// A whole rule: its kind and all of the kind's numbers.
  [[nodiscard]] StageTolerance rule(const toml::table& table, const std::string& path) const {
    StageTolerance t;
    t.kind = kind(text_at(table, "kind", path), path + ".kind");
    std::vector<std::string> known{"kind"};
    if (t.kind == ToleranceKind::exact) {
      known.emplace_back("reason");
      t.reasons["exact"] = text_at(table, "reason", path);
    }
    for (const ToleranceNumber& number : numbers_of(t.kind)) {
      known.emplace_back(number.key);
      const toml::node* node = table.get(number.key);
      if (node == nullptr) {
        refuse(path + "." + std::string(number.key), "missing", "{ value, reason }", "nothing");
      }
      read_number(number, *node, path, t);
    }
    for (const auto& [key, node] : table) {
      require_known(std::string(key.str()), path, known);
    }
    return t;
  }

  [[nodiscard]] ToleranceKind kind(const std::string& name, const std::string& path) const {
    for (const ToleranceKind k :
         {ToleranceKind::exact, ToleranceKind::bf16, ToleranceKind::f32, ToleranceKind::quantised}) {
      if (name == name_of(k)) {
        return k;
      }
    }
    refuse(path, "unknown kind", "exact, bf16, f32 or quantised", name);
  }

  void read_number(const ToleranceNumber& number, const toml::node& node, const std::string& path,
                   StageTolerance& into) const {
    const std::string at = path + "." + std::string(number.key);
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      refuse(at, "a tolerance needs its reason", "{ value = NUMBER, reason = \"...\" }", type_of(node));
    }
    for (const auto& [key, unused] : *table) {
      require_known(std::string(key.str()), at, {"value", "reason"});
    }
    const toml::node* value_node = table->get("value");
    if (value_node == nullptr || !value_node->is_number()) {
      refuse(at + ".value", value_node == nullptr ? "missing" : "wrong type", "a number",
             value_node == nullptr ? "nothing" : type_of(*value_node));
    }
    const double value = value_node->value<double>().value_or(-1);
    const bool in_range = std::isfinite(value) && value >= 0 && value <= number.maximum;
    if (!in_range || (number.whole && value != std::floor(value))) {
      refuse(at + ".value", "out of range",
             fmt::format("a {}number from 0{}", number.whole ? "whole " : "finite ",
                         number.maximum < 1e9 ? fmt::format(" to {:g}", number.maximum) : ""),
             fmt::format("{:g}", value));
    }
    into.reasons.insert_or_assign(std::string(number.key), text_at(*table, "reason", at));
    into.*number.member = value;
  }

  void read_stage(const std::string& name, const toml::node& node, Tolerances& into) const {
    const std::string path = "stages." + name;
    const StageInfo* stage = family_.find(name);
    if (stage == nullptr) {
      std::vector<std::string> names;
      std::transform(family_.stages.begin(), family_.stages.end(), std::back_inserter(names),
                     [](const StageInfo& s) { return std::string(s.name); });
      refuse(path, "unknown stage", fmt::format("one of {}", fmt::join(names, ", ")), name);
    }
    const toml::table& table = table_of(node, path);
    StageTolerance t = starting_point(table, path, name, into);
    std::vector<std::string> known{"rule"};
    for (const ToleranceNumber& number : numbers_of(t.kind)) {
      known.emplace_back(number.key);
      if (const toml::node* value = table.get(number.key)) {
        read_number(number, *value, path, t);
      }
    }
    read_optional_numbers(table, path, known, t);
    for (const auto& [key, unused] : table) {
      require_known(std::string(key.str()), path, known);
    }
    require_fitting(*stage, t, path);
    into.stages_.insert_or_assign(name, std::move(t));
  }

  void read_optional_numbers(const toml::table& table, const std::string& path, std::vector<std::string>& known,
                             StageTolerance& into) const {
    const auto numbers = optional_numbers_of(into.kind);
    const bool any =
        std::any_of(numbers.begin(), numbers.end(), [&](const auto& number) { return table.contains(number.key); });
    for (const ToleranceNumber& number : numbers) {
      known.emplace_back(number.key);
      const toml::node* node = table.get(number.key);
      if (any && node == nullptr) {
        refuse(path + "." + std::string(number.key), "missing beside the other one", "{ value, reason }", "nothing");
      }
      if (node != nullptr) {
        read_number(number, *node, path, into);
      }
    }
  }

  [[nodiscard]] StageTolerance starting_point(const toml::table& table, const std::string& path,
                                              const std::string& stage, const Tolerances& set) const {
    if (!table.contains("rule")) {
      const auto current = set.stages_.find(stage);
      if (current == set.stages_.end()) {
        refuse(path + ".rule", "missing", "the name of a rule", "nothing");
      }
      return current->second;
    }
    const std::string name = text_at(table, "rule", path);
    const auto found = set.rules_.find(name);
    if (found == set.rules_.end()) {
      std::vector<std::string> names;
      std::transform(set.rules_.begin(), set.rules_.end(), std::back_inserter(names),
                     [](const auto& entry) { return entry.first; });
      refuse(path + ".rule", "unknown rule", fmt::format("one of {}", fmt::join(names, ", ")), name);
    }
    return found->second;
  }

  /// Discrete stages are exact or nothing; a rounding has one kind of unit.
  void require_fitting(const StageInfo& stage, const StageTolerance& t, const std::string& path) const {
    if (t.allows_uncertified() && stage.kind != StageKind::index) {
      refuse(path, "only a selection can be uncertified", "selection or idx", std::string(stage.name));
    }
    if (t.kind == ToleranceKind::exact) {
      return;
    }
    const bool discrete = stage.kind == StageKind::index || stage.kind == StageKind::mask;
    const bool quantised = is_grid(stage.rounding) || stage.rounding == Rounding::mixed;
    const bool fits = !discrete && (t.kind == ToleranceKind::quantised ? quantised
                                    : t.kind == ToleranceKind::f32     ? stage.dtype == DType::f32
                                                                       : stage.dtype == DType::bf16);
    if (!fits) {
      refuse(path, "this kind of tolerance does not fit the stage",
             discrete ? "exact" : fmt::format("exact or one for {} values", name_of(stage.rounding)), name_of(t.kind));
    }
  }

  std::string source_;
  const ModelFamily& family_;
};

Tolerances Tolerances::defaults(const ModelFamily& family) {
  Tolerances t;
  ToleranceFile("built-in tolerances.toml", family).read(default_tolerances_toml(), t);
  for (const StageInfo& stage : family.stages) {
    static_cast<void>(t.at(stage));
  }
  return t;
}

Tolerances Tolerances::parse(std::string_view toml, const std::string& source, const ModelFamily& family) {
  Tolerances t = defaults(family);
  ToleranceFile(source, family).read(toml, t);
  return t;
}

Tolerances Tolerances::from_file(const std::string& path, const ModelFamily& family) {
  return parse(read_text_file(path, {.what = "a TOML file of tolerances", .megabytes = 10}), path, family);
}

}  // namespace attndiff
