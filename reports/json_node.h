#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attndiff {

/// A value inside a JSON document that knows its place, so that what is wrong with it can be said. Reading throws
/// Error(input) naming file, place ("/fixtures/0/path"), expected and found.
/// It refers to the document and to the nodes above it, all of which must outlive it.
class JsonNode {
 public:
  JsonNode(const nlohmann::ordered_json& value, const std::string& source, std::string place)
      : value_(&value), source_(&source), key_(std::move(place)) {}

  /// The member of that name; an error where this is no object or lacks it.
  [[nodiscard]] JsonNode at(const std::string& key) const;
  /// The same, or nothing where it is lacking or null.
  [[nodiscard]] std::optional<JsonNode> find(const std::string& key) const;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool truth() const;
  [[nodiscard]] double number() const;
  /// A whole number from 0 on.
  [[nodiscard]] std::int64_t count() const;
  [[nodiscard]] std::vector<std::int64_t> counts() const;
  [[nodiscard]] std::vector<std::string> texts() const;
  /// The member as a number, or "nan", "inf", "-inf": then of the bits of the double that stand beside it, where they
  /// do.
  [[nodiscard]] double figure(const std::string& key) const;
  /// The same with a tensor's value, whose bits are those of the stored element.
  [[nodiscard]] double value(const std::string& key) const;

  void for_each_element(const std::function<void(const JsonNode&)>& use) const;
  void for_each_member(const std::function<void(const std::string&, const JsonNode&)>& use) const;

  /// Refuses this value.
  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  JsonNode(const nlohmann::ordered_json& value, const JsonNode& parent, std::string key)
      : value_(&value), source_(parent.source_), parent_(&parent), key_(std::move(key)) {}

  [[nodiscard]] std::string place() const;
  [[nodiscard]] std::string found() const;

  const nlohmann::ordered_json* value_;
  const std::string* source_;
  const JsonNode* parent_ = nullptr;
  std::string key_;
};

}  // namespace attndiff
