#include "reports/json_node.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <limits>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

/// A double of its 16 hexadecimal digits, or nothing.
std::optional<double> double_of(const std::string& digits) {
  constexpr int kHexadecimal = 16;
  std::uint64_t bits = 0;
  const char* const end = digits.data() + digits.size();
  const auto [last, error] = std::from_chars(digits.data(), end, bits, kHexadecimal);
  if (error != std::errc{} || last != end) {
    return std::nullopt;
  }
  return std::bit_cast<double>(bits);
}

}  // namespace

JsonNode JsonNode::at(const std::string& key) const {
  if (!value_->is_object()) {
    refuse("an object");
  }
  const auto member = value_->find(key);
  if (member == value_->end()) {
    throw Error(
        ErrorKind::input,
        {.file = *source_, .object = place(), .problem = "lacks a key", .expected = "\"" + key + "\"", .found = {}});
  }
  return {*member, *this, key};
}

std::optional<JsonNode> JsonNode::find(const std::string& key) const {
  if (!value_->is_object()) {
    refuse("an object");
  }
  const auto member = value_->find(key);
  if (member == value_->end() || member->is_null()) {
    return std::nullopt;
  }
  return JsonNode(*member, *this, key);
}

std::string JsonNode::text() const {
  if (!value_->is_string()) {
    refuse("a string");
  }
  return value_->get<std::string>();
}

bool JsonNode::truth() const {
  if (!value_->is_boolean()) {
    refuse("true or false");
  }
  return value_->get<bool>();
}

double JsonNode::number() const {
  if (!value_->is_number()) {
    refuse("a number");
  }
  return value_->get<double>();
}

std::int64_t JsonNode::count() const {
  const bool whole = value_->is_number_integer();
  const bool fits =
      whole && (value_->is_number_unsigned() ? value_->get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max()
                                             : value_->get<std::int64_t>() >= 0);
  if (!fits) {
    refuse("a whole number from 0 on");
  }
  return value_->get<std::int64_t>();
}

std::vector<std::int64_t> JsonNode::counts() const {
  std::vector<std::int64_t> all;
  for_each_element([&](const JsonNode& element) { all.push_back(element.count()); });
  return all;
}

std::vector<std::string> JsonNode::texts() const {
  std::vector<std::string> all;
  for_each_element([&](const JsonNode& element) { all.push_back(element.text()); });
  return all;
}

double JsonNode::figure(const std::string& key) const {
  const double number = value(key);
  if (const auto digits = find(key + "_bits"); digits.has_value()) {
    const std::optional<double> exact = double_of(digits->text());
    if (!exact.has_value()) {
      digits->refuse("the bits of a double in hexadecimal");
    }
    return *exact;
  }
  return number;
}

double JsonNode::value(const std::string& key) const {
  const JsonNode member = at(key);
  if (member.value_->is_number()) {
    return member.value_->get<double>();
  }
  const std::string word = member.value_->is_string() ? member.value_->get<std::string>() : std::string();
  if (word == "nan") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (word == "inf" || word == "-inf") {
    return word == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  }
  member.refuse(R"(a number, "nan", "inf" or "-inf")");
}

void JsonNode::for_each_element(const std::function<void(const JsonNode&)>& use) const {
  if (!value_->is_array()) {
    refuse("an array");
  }
  for (std::size_t i = 0; i < value_->size(); ++i) {
    use(JsonNode((*value_)[i], *this, std::to_string(i)));
  }
}

void JsonNode::for_each_member(const std::function<void(const std::string&, const JsonNode&)>& use) const {
  if (!value_->is_object()) {
    refuse("an object");
  }
  for (const auto& [key, member] : value_->items()) {
    use(key, JsonNode(member, *this, key));
  }
}

void JsonNode::refuse(const std::string& expected) const {
  throw Error(ErrorKind::input, {.file = *source_,
                                 .object = place(),
                                 .problem = "not what a report has here",
                                 .expected = expected,
                                 .found = found()});
}

std::string JsonNode::place() const {
  if (parent_ == nullptr) {
    return key_.empty() ? "/" : key_;
  }
  const std::string above = parent_->place();
  return (above == "/" ? "" : above) + "/" + key_;
}

std::string JsonNode::found() const {
  constexpr std::size_t kMost = 40;
  std::string text = value_->is_structured() ? (value_->is_array() ? "an array" : "an object")
                                             : value_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMost) {
    text = text.substr(0, kMost) + "...";
  }
  return text;
}

}  // namespace attndiff
