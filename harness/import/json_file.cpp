#include "harness/import/json_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

using nlohmann::json;

constexpr std::uintmax_t kLargestJson = 100'000'000;

}  // namespace

std::ifstream open_input(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) {
    throw Error(ErrorKind::input, {.file = path,
                                   .object = {},
                                   .problem = "cannot be opened",
                                   .expected = "a file",
                                   .found = failed ? failed.message() : "no such file"});
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorKind::input,
                {.file = path, .object = {}, .problem = "cannot be read", .expected = "a readable file", .found = {}});
  }
  return file;
}

json parse_json(const std::string& text, const std::string& file, const std::string& object) {
  // The parser itself would keep the last of two equal keys, and so hide the first.
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  json value;
  try {
    value = json::parse(text, watch);
  } catch (const json::exception& e) {
    throw Error(
        ErrorKind::input,
        {.file = file, .object = object, .problem = "not valid JSON", .expected = "a JSON object", .found = e.what()});
  }
  if (!twice.empty()) {
    throw Error(
        ErrorKind::input,
        {.file = file, .object = object, .problem = "a key comes twice", .expected = "each once", .found = twice});
  }
  if (!value.is_object()) {
    throw Error(ErrorKind::input, {.file = file,
                                   .object = object,
                                   .problem = "wrong JSON value",
                                   .expected = "an object",
                                   .found = json_text(value)});
  }
  return value;
}

json read_json(const std::string& path) {
  std::ifstream file = open_input(path);
  if (std::filesystem::file_size(path) > kLargestJson) {
    throw Error(ErrorKind::input,
                {.file = path, .object = {}, .problem = "too long", .expected = "at most 100 MB of JSON", .found = {}});
  }
  std::ostringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), path, {});
}

std::string json_text(const json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

}  // namespace attndiff
