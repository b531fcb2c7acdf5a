#include "harness/recipe/toml_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <utility>

namespace attndiff {
namespace {

std::string type_of(const toml::node& node) {
  std::ostringstream text;
  text << node.type() << " at line " << node.source().begin.line;
  return text.str();
}

}  // namespace

TomlTable::TomlTable(const toml::table& table, std::string source, std::string path)
    : table_(&table), source_(std::move(source)), path_(std::move(path)) {}

bool TomlTable::has(const std::string& key) const { return table_->contains(key); }

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, node] : *table_) {
    names.emplace_back(key.str());
  }
  return names;
}

std::optional<std::int64_t> TomlTable::integer(const std::string& key) {
  const toml::node* node = ask(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_integer()) {
    throw wrong_type(key, *node, "an integer");
  }
  return node->as_integer()->get();
}

std::optional<std::int64_t> TomlTable::integer(const std::string& key, std::int64_t low, std::int64_t high) {
  const std::optional<std::int64_t> value = integer(key);
  if (value && (*value < low || *value > high)) {
    throw wrong(key, "out of range", fmt::format("an integer from {} to {}", low, high), std::to_string(*value));
  }
  return value;
}

std::optional<double> TomlTable::real(const std::string& key) {
  const toml::node* node = ask(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (node->is_integer()) {
    return static_cast<double>(node->as_integer()->get());
  }
  if (!node->is_floating_point()) {
    throw wrong_type(key, *node, "a number");
  }
  return node->as_floating_point()->get();
}

std::optional<bool> TomlTable::flag(const std::string& key) {
  const toml::node* node = ask(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_boolean()) {
    throw wrong_type(key, *node, "true or false");
  }
  return node->as_boolean()->get();
}

std::optional<std::string> TomlTable::text(const std::string& key) {
  const toml::node* node = ask(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_string()) {
    throw wrong_type(key, *node, "a string");
  }
  return node->as_string()->get();
}

std::optional<TomlTable> TomlTable::table(const std::string& key) {
  const toml::node* node = ask(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_table()) {
    throw wrong_type(key, *node, "a table");
  }
  return TomlTable(*node->as_table(), source_, path_of(key));
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) {
  std::vector<TomlTable> members;
  const toml::node* node = ask(key);
  if (node == nullptr) {
    return members;
  }
  if (!node->is_array()) {
    throw wrong_type(key, *node, "an array of tables");
  }
  for (const toml::node& member : *node->as_array()) {
    const std::string name = fmt::format("{}[{}]", key, members.size());
    if (!member.is_table()) {
      throw wrong_type(name, member, "a table");
    }
    members.emplace_back(*member.as_table(), source_, path_of(name));
  }
  return members;
}

void TomlTable::finish() const {
  for (const auto& [key, node] : *table_) {
    const std::string name(key.str());
    if (!asked_.contains(name)) {
      throw wrong(name, "unknown key", fmt::format("one of {}", fmt::join(asked_, ", ")),
                  fmt::format("{} at line {}", name, node.source().begin.line));
    }
  }
}

Error TomlTable::wrong(const std::string& key, const std::string& problem, const std::string& expected,
                       const std::string& found) const {
  return {
      ErrorKind::input,
      {.file = source_, .object = path_of(key), .problem = problem, .expected = expected, .found = found},
  };
}

const toml::node* TomlTable::ask(const std::string& key) {
  asked_.insert(key);
  return table_->get(key);
}

Error TomlTable::wrong_type(const std::string& key, const toml::node& node, const std::string& expected) const {
  return wrong(key, "wrong type", expected, type_of(node));
}

std::string TomlTable::path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

toml::table parse_toml(std::string_view text, const std::string& source) {
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw Error(ErrorKind::input, {.file = source,
                                   .object = fmt::format("line {}, column {}", at.line, at.column),
                                   .problem = "not valid TOML",
                                   .expected = {},
                                   .found = std::string(error.description())});
  }
}

}  // namespace attndiff
