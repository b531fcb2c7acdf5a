#include "reports/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "reports/stage_order.h"
#include "reports/text_table.h"
#include "reports/words.h"

namespace attndiff {
namespace {

/// Comparisons that do not fail the run and share a line of the summary.
struct Group {
  const ComparisonRecord* first = nullptr;
  std::int64_t comparisons = 0;
  std::int64_t elements = 0;
  std::int64_t mismatches = 0;
  double bound_ratio = -1;  ///< below 0: no bound

  [[nodiscard]] bool takes(const ComparisonRecord& c) const noexcept {
    return first->stage == c.stage && first->candidate == c.candidate && first->mode == c.mode &&
           first->result.verdict == c.result.verdict;
  }
  void add(const ComparisonRecord& c) noexcept {
    comparisons += c.result.counted ? 1 : 0;
    elements += c.result.count;
    mismatches += c.result.mismatches;
    bound_ratio = std::max(bound_ratio, c.result.bound_ratio.value_or(-1));
  }
};

const char* verdict_colour(const std::string& word) noexcept {
  const std::optional<Verdict> verdict = verdict_named(word);
  if (!verdict.has_value()) {
    return nullptr;
  }
  if (fails_run(*verdict)) {
    return kRed;
  }
  return *verdict == Verdict::pass ? kGreen : kYellow;
}

bool summarised(const ComparisonRecord& c) noexcept { return info_of(c.result.verdict).effect == VerdictEffect::none; }

/// A value's position in a list, to which it is added where it is not there yet.
std::size_t place_in(std::vector<std::string>& list, const std::string& value) {
  const auto found = std::find(list.begin(), list.end(), value);
  if (found != list.end()) {
    return static_cast<std::size_t>(found - list.begin());
  }
  list.push_back(value);
  return list.size() - 1;
}

/// By candidate and mode as they come, and by stage as a layer has them.
void sort_groups(std::vector<Group>& groups, std::vector<std::string> stages) {
  std::vector<std::string> candidates;
  std::vector<std::string> modes;
  for (const Group& g : groups) {
    (void)place_in(candidates, g.first->candidate);
    (void)place_in(modes, g.first->mode);
  }
  const auto place = [&](const Group& g) {
    return std::tuple(place_in(candidates, g.first->candidate), place_in(modes, g.first->mode),
                      place_in(stages, g.first->stage));
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) { return place(a) < place(b); });
}

std::vector<Group> grouped(const FixtureReport& fixture, const std::vector<std::string>& stages) {
  std::vector<Group> groups;
  for (const ComparisonRecord& c : fixture.comparisons) {
    if (!summarised(c)) {
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.takes(c); });
    if (group == groups.end()) {
      groups.push_back({.first = &c});
      group = groups.end() - 1;
    }
    group->add(c);
  }
  sort_groups(groups, stages);
  return groups;
}

std::string summary(const RunReport& report, bool colour) {
  TextTable table({{"fixture"},
                   {"candidate"},
                   {"mode"},
                   {"stage"},
                   {.title = "verdict", .colour = verdict_colour},
                   {"compared", true},
                   {"elements", true},
                   {"differ", true},
                   {"worst |d| / bound", true}});
  const std::vector<std::string> stages = stage_order(report);
  for (const FixtureReport& fixture : report.fixtures) {
    for (const Group& g : grouped(fixture, stages)) {
      const bool observed = g.first->result.verdict != Verdict::unobserved;
      const std::string headroom = !observed ? "-" : g.bound_ratio < 0 ? "exact" : fmt::format("{:.3f}", g.bound_ratio);
      table.add({fixture.path, g.first->candidate, g.first->mode, g.first->stage,
                 std::string(name_of(g.first->result.verdict)), fmt::format("{}", g.comparisons),
                 fmt::format("{}", g.elements), fmt::format("{}", g.mismatches), headroom});
    }
  }
  return table.text(colour);
}

std::string details(const RunReport& report, bool all, bool colour) {
  TextTable table({{"fixture"},
                   {"step"},
                   {"layer"},
                   {"candidate"},
                   {"mode"},
                   {"stage"},
                   {.title = "verdict", .colour = verdict_colour},
                   {"mismatches", true},
                   {"largest error"}});
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (summarised(c) && !all) {
        continue;
      }
      table.add({fixture.path, step_text(c), fmt::format("{} ({})", c.layer_id, c.layer_kind), c.candidate, c.mode,
                 c.stage, std::string(name_of(c.result.verdict)),
                 fmt::format("{} of {}", c.result.mismatches, c.result.count), error_text(c.result)});
      if (!summarised(c)) {
        table.note(c.result.reason);
        if (c.location.has_value()) {
          table.note(*c.location);
        }
        if (c.known_failure.has_value()) {
          table.note(*c.known_failure);
        }
      }
    }
  }
  return table.text(colour);
}

/// Where a run fails more than once, which stages do, by candidate and mode: what fails in lockstep is itself wrong,
/// what fails only in free mode may have been given something wrong.
std::string failing_stages(const RunReport& report) {
  const std::vector<std::string> stages = stage_order(report);
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::int64_t>> counts;
  std::int64_t all = 0;
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (c.fails()) {
        ++counts[{c.candidate, c.mode}][c.stage];
        ++all;
      }
    }
  }
  if (all < 2) {
    return {};
  }
  std::string text = "Failing stages:\n";
  for (const auto& [where, by_stage] : counts) {
    std::vector<std::string> parts;
    for (const std::string& stage : stages) {
      if (const auto found = by_stage.find(stage); found != by_stage.end()) {
        parts.push_back(fmt::format("{} ({})", stage, found->second));
      }
    }
    text += fmt::format("  {} {}: {}\n", where.first, where.second, fmt::join(parts, ", "));
  }
  return text;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

std::string totals(const RunReport& report, bool colour) {
  const ExitReason reason = exit_reason(report);
  const char* hue = reason == ExitReason::passed ? kGreen : reason == ExitReason::failed ? kRed : kYellow;
  return fmt::format("{}\n{}\n", totals_text(report),
                     coloured(std::string(sentence_of(reason)), colour ? hue : nullptr));
}

std::string repro(const RunReport& report) {
  const ComparisonRecord* failure = first_failure(report);
  if (failure == nullptr || failure->repro.empty()) {
    return {};
  }
  return "To see the first failure alone:\n" + failure->repro + "\n";
}

}  // namespace

std::string table_text(const RunReport& report, const TableOptions& options) {
  std::string text = options.quiet ? std::string()
                                   : fmt::format("reference {}, candidate {}, mode {}\n", report.reference,
                                                 fmt::join(report.candidates, ", "), report.mode);
  const bool summarise = !options.verbose && !options.quiet;
  const std::vector<std::string> sections{summarise ? summary(report, options.colour) : std::string(),
                                          details(report, options.verbose, options.colour),
                                          failing_stages(report),
                                          joined(error_lines(report)),
                                          totals(report, options.colour),
                                          repro(report)};
  for (const std::string& section : sections) {
    if (!section.empty()) {
      text += (text.empty() ? "" : "\n") + section;
    }
  }
  return text;
}

}  // namespace attndiff
