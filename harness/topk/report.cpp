#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "harness/topk/cases.h"
#include "reference/topk.h"

namespace attndiff {
namespace {

/// Indices of `a` that `b` lacks, as text. The sets of a case file may come in any order.
std::string missing_in(std::vector<std::int32_t> a, std::vector<std::int32_t> b) {
  constexpr std::size_t kShown = 10;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<std::int32_t> difference;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(difference));
  if (difference.empty()) {
    return "none";
  }
  const std::span<const std::int32_t> shown = std::span(difference).first(std::min(kShown, difference.size()));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (shown.size() < difference.size()) {
    text += fmt::format(", and {} more", difference.size() - shown.size());
  }
  return text;
}

}  // namespace

std::string describe(const TopkFailure& failure) {
  return fmt::format("{} (k {}, n {}): expected but not picked {}; picked but not expected {}", failure.name, failure.k,
                     failure.n, missing_in(failure.expected, failure.found),
                     missing_in(failure.found, failure.expected));
}

TopkReport::Verdict TopkReport::verdict() const noexcept {
  if (total == 0) {
    return Verdict::nothing_checked;
  }
  return passed == total ? Verdict::pass : Verdict::fail;
}

TopkReport run_topk_cases(std::span<const TopkCase> cases, const TopkSelection& select) {
  TopkReport report;
  report.total = static_cast<std::int64_t>(cases.size());
  for (const TopkCase& c : cases) {
    std::vector<std::int32_t> found = select(c.values, c.k);
    if (found == c.index_set) {
      ++report.passed;
    } else {
      report.failures.push_back(
          {c.name, c.k, static_cast<std::int64_t>(c.values.size()), c.index_set, std::move(found)});
    }
  }
  return report;
}

TopkReport run_topk_cases(std::span<const TopkCase> cases) { return run_topk_cases(cases, reference::topk_set); }

}  // namespace attndiff
