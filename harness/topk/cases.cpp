#include "harness/topk/cases.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "harness/files/text_file.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

using nlohmann::json;

/// A JSON value as an error message shows it.
std::string shown(const json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kLongest) {
    text = text.substr(0, kLongest) + "...";
  }
  return fmt::format("{} {}", value.type_name(), text);
}

/// Where in the file a value stands; every complaint about it starts here.
struct Location {
  const std::string& file;
  std::string object;

  [[noreturn]] void reject(const std::string& problem, const std::string& expected, const std::string& found) const {
    throw Error(ErrorKind::input, {file, object, problem, expected, found});
  }
};

const json& required(const json& object, const char* key, const char* expected, const Location& at) {
  const auto found = object.find(key);
  if (found == object.end()) {
    at.reject(fmt::format("key '{}' is missing", key), expected, "no such key");
  }
  return *found;
}

const json& required_array(const json& object, const char* key, const Location& at) {
  const json& value = required(object, key, "an array", at);
  if (!value.is_array()) {
    at.reject(fmt::format("'{}' has the wrong type", key), "an array", shown(value));
  }
  return value;
}

/// A JSON integer within [low, high].
std::int64_t integer_in(const json& value, std::int64_t low, std::int64_t high, const std::string& what,
                        const Location& at) {
  const bool too_big =
      value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_integer() || too_big || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
    at.reject(what + " is not valid", fmt::format("an integer from {} to {}", low, high), shown(value));
  }
  return value.get<std::int64_t>();
}

float value_of(const json& value, std::size_t i, const Location& at) {
  if (value.is_number()) {
    const double number = value.get<double>();
    // A double at or past this point rounds to infinity in float32; infinities are written as strings.
    constexpr double kOverflow = 0x1.ffffffp127;
    if (std::fabs(number) < kOverflow) {
      return static_cast<float>(number);
    }
  } else if (value == "inf") {
    return std::numeric_limits<float>::infinity();
  } else if (value == "-inf") {
    return -std::numeric_limits<float>::infinity();
  } else if (value == "nan") {
    return std::numeric_limits<float>::quiet_NaN();
  }
  at.reject(fmt::format("values[{}] is not valid", i), R"(a float32 number, "inf", "-inf" or "nan")", shown(value));
}

float value_of_bits(const json& value, std::size_t i, const Location& at) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    std::uint32_t bits = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, bits, 16);
    if (text.size() == 8 && parsed.ec == std::errc() && parsed.ptr == end) {
      return std::bit_cast<float>(bits);
    }
  }
  at.reject(fmt::format("bits[{}] is not valid", i), "a string of 8 hexadecimal digits", shown(value));
}

template <typename Parse>
std::vector<float> floats(const json& array, const Parse& parse, const Location& at) {
  std::vector<float> values;
  values.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    values.push_back(parse(array[i], i, at));
  }
  return values;
}

std::vector<float> row_of(const json& object, const Location& at) {
  const bool has_values = object.contains("values");
  const bool has_bits = object.contains("bits");
  if (!has_values && !has_bits) {
    at.reject("the row is missing", "'values' or 'bits'", "neither key");
  }
  std::vector<float> values;
  if (has_values) {
    values = floats(required_array(object, "values", at), value_of, at);
  }
  if (!has_bits) {
    return values;
  }
  std::vector<float> exact = floats(required_array(object, "bits", at), value_of_bits, at);
  if (has_values && exact.size() != values.size()) {
    at.reject("'bits' and 'values' differ in length", fmt::format("{} bits", values.size()),
              fmt::format("{} bits", exact.size()));
  }
  return exact;
}

std::string string_of(const json& value, const char* key, const Location& at) {
  if (!value.is_string()) {
    at.reject(fmt::format("'{}' has the wrong type", key), "a string", shown(value));
  }
  return value.get<std::string>();
}

void check_path(const json& object, const TopkCase& c, const Location& at) {
  const auto path = object.find("path");
  if (path == object.end()) {
    return;
  }
  // docs/topk.md: torch sorts partially where k is at most a sixty-fourth of the row.
  const bool partial = c.k <= static_cast<std::int64_t>(c.values.size()) / 64;
  const std::string expected = partial ? "partial_sort" : "nth_element";
  if (string_of(*path, "path", at) != expected) {
    at.reject("'path' is not the branch that k and the row's length select", expected, shown(*path));
  }
}

TopkCase case_of(const json& object, const std::string& file, std::size_t number) {
  Location at{file, fmt::format("cases[{}]", number)};
  if (!object.is_object()) {
    at.reject("a case has the wrong type", "an object", shown(object));
  }
  TopkCase c;
  c.name = string_of(required(object, "name", "a string", at), "name", at);
  at.object += fmt::format(" ({})", c.name);
  c.values = row_of(object, at);
  c.k = integer_in(required(object, "k", "an integer", at), 0, static_cast<std::int64_t>(c.values.size()), "'k'", at);
  const json& set = required_array(object, "index_set", at);
  for (std::size_t i = 0; i < set.size(); ++i) {
    c.index_set.push_back(static_cast<std::int32_t>(integer_in(set[i], std::numeric_limits<std::int32_t>::min(),
                                                               std::numeric_limits<std::int32_t>::max(),
                                                               fmt::format("index_set[{}]", i), at)));
  }
  check_path(object, c, at);
  return c;
}

json parse_file(const std::string& file) {
  constexpr const char* kWhat = "a file of recorded top-k cases";
  const std::string text = read_text_file(file, {.what = kWhat, .megabytes = 100});
  const Location at{file, ""};
  if (text.empty()) {
    at.reject("cannot be read", kWhat, "an empty file");
  }
  try {
    return json::parse(text);
  } catch (const json::exception& problem) {
    at.reject("is not JSON", "a JSON object with the key 'cases'", problem.what());
  }
}

}  // namespace

std::vector<TopkCase> read_topk_cases(const std::string& file) {
  const json root = parse_file(file);
  const Location at{file, ""};
  if (!root.is_object()) {
    at.reject("the file has the wrong form", "a JSON object with the key 'cases'", shown(root));
  }
  const json& array = required_array(root, "cases", at);
  std::vector<TopkCase> cases;
  cases.reserve(array.size());
  std::set<std::string> names;
  for (std::size_t i = 0; i < array.size(); ++i) {
    cases.push_back(case_of(array[i], file, i));
    if (!names.insert(cases.back().name).second) {
      Location{file, fmt::format("cases[{}]", i)}.reject("two cases have one name", "a name of its own",
                                                         cases.back().name);
    }
  }
  return cases;
}

}  // namespace attndiff
