#include "harness/run/int_list.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 30;

[[noreturn]] void complain(const std::string& option, const std::string& found) {
  throw Error(ErrorKind::usage, {.file = {},
                                 .object = option,
                                 .problem = "not a list of numbers",
                                 .expected = "numbers and ranges such as 0,2-5",
                                 .found = "'" + found + "'"});
}

std::int64_t number(std::string_view text, const std::string& option, const std::string& whole) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > kLargest) {
    complain(option, whole);
  }
  return value;
}

}  // namespace

IntList IntList::parse(const std::string& text, const std::string& option) {
  IntList list;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t dash = part.find('-');
    const std::int64_t first = number(part.substr(0, dash), option, text);
    const std::int64_t last = dash == std::string_view::npos ? first : number(part.substr(dash + 1), option, text);
    if (last < first) {
      complain(option, text);
    }
    list.ranges_.push_back({.first = first, .last = last});
    if (comma == std::string_view::npos) {
      return list;
    }
    rest.remove_prefix(comma + 1);
  }
}

bool IntList::contains(std::int64_t v) const noexcept {
  return ranges_.empty() ||
         std::any_of(ranges_.begin(), ranges_.end(), [&](Range r) { return v >= r.first && v <= r.last; });
}

std::vector<std::int64_t> IntList::missing_from(const std::vector<std::int64_t>& have) const {
  constexpr std::int64_t kReported = 16;  // a long range that misses is named by its first members
  std::vector<std::int64_t> missing;
  for (const Range& range : ranges_) {
    for (std::int64_t v = range.first; v <= range.last && static_cast<std::int64_t>(missing.size()) < kReported; ++v) {
      if (std::find(have.begin(), have.end(), v) == have.end()) {
        missing.push_back(v);
      }
    }
  }
  return missing;
}

}  // namespace attndiff
