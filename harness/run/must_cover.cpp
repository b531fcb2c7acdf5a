#include <algorithm>

#include "harness/run/coverage.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string known_counters() {
  std::string names;
  for (const CoverageCounterInfo& counter : coverage_counters()) {
    names += (names.empty() ? "" : ", ") + std::string(counter.name);
  }
  return names;
}

bool is_counter(std::string_view name) {
  const auto counters = coverage_counters();
  return std::any_of(counters.begin(), counters.end(), [&](const auto& counter) { return counter.name == name; });
}

}  // namespace

std::vector<std::string> parse_must_cover(std::string_view text, const std::string& object) {
  std::vector<std::string> names;
  const auto refuse = [&](std::string problem, std::string expected, std::string_view found) {
    throw Error(ErrorKind::input, {.file = {},
                                   .object = object,
                                   .problem = std::move(problem),
                                   .expected = std::move(expected),
                                   .found = "\"" + std::string(found) + "\""});
  };
  while (!trimmed(text).empty() || !names.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string name(trimmed(text.substr(0, comma)));
    if (!is_counter(name)) {
      refuse("no such coverage counter", "one of " + known_counters(), name);
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      refuse("a coverage counter named twice", "each counter once", name);
    }
    names.push_back(name);
    if (comma == text.size()) {
      break;
    }
    text.remove_prefix(comma + 1);
  }
  return names;
}

std::vector<std::string> unmet(const Coverage& coverage, std::span<const std::string> names) {
  std::vector<std::string> missing;
  std::copy_if(names.begin(), names.end(), std::back_inserter(missing),
               [&](const std::string& name) { return coverage.at(name) == 0; });
  return missing;
}

}  // namespace attndiff
