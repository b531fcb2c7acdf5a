#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reference/contract/error.h"

namespace attndiff {

/// A TOML table read key by key. A value of the wrong type is an Error(input) that names file, key and line; a key
/// that nothing asked for is one at finish(). Does not own the table.
class TomlTable {
 public:
  /// `path` is the table's own dotted key, empty for the document.
  TomlTable(const toml::table& table, std::string source, std::string path);

  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] std::vector<std::string> keys() const;

  /// An absent key gives nothing.
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& key);
  /// The same, within [low, high].
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& key, std::int64_t low, std::int64_t high);
  /// Takes an integer too.
  [[nodiscard]] std::optional<double> real(const std::string& key);
  [[nodiscard]] std::optional<bool> flag(const std::string& key);
  [[nodiscard]] std::optional<std::string> text(const std::string& key);
  [[nodiscard]] std::optional<TomlTable> table(const std::string& key);
  /// An array of tables; empty where the key is absent.
  [[nodiscard]] std::vector<TomlTable> tables(const std::string& key);

  /// Throws for the first key that was never asked for, with those that were.
  void finish() const;

  /// The error of a key whose value does not do.
  [[nodiscard]] Error wrong(const std::string& key, const std::string& problem, const std::string& expected,
                            const std::string& found) const;

 private:
  const toml::node* ask(const std::string& key);
  [[nodiscard]] Error wrong_type(const std::string& key, const toml::node& node, const std::string& expected) const;
  [[nodiscard]] std::string path_of(const std::string& key) const;

  const toml::table* table_;
  std::string source_;
  std::string path_;
  std::set<std::string> asked_;
};

/// Parses TOML text; throws Error(input) with the line of a syntax error.
[[nodiscard]] toml::table parse_toml(std::string_view text, const std::string& source);

}  // namespace attndiff
