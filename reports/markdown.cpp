#include "reports/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reports/escape.h"
#include "reports/words.h"

namespace attndiff {
namespace {

/// GitHub takes 65536 characters.
constexpr std::size_t kMostBytes = 60000;

std::string headline(const RunReport& report) {
  const ExitReason reason = exit_reason(report);
  return fmt::format(
      "### attndiff: {}\n\n{}\n\nReference {}, candidate {}, mode {}, version {}.\n", sentence_of(reason),
      markdown_escaped(totals_text(report)), markdown_code(report.reference),
      [&] {
        std::string names;
        for (const std::string& name : report.candidates) {
          names += (names.empty() ? "" : ", ") + markdown_code(name);
        }
        return names;
      }(),
      markdown_code(report.mode), markdown_escaped(report.tool_version));
}

std::string first_failure_text(const RunReport& report) {
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (!c.fails()) {
        continue;
      }
      std::string text = fmt::format(
          "\n**First failure:** stage {} of layer {} ({}) in step {} of {}, candidate {}, mode {}: {}\n\n- {}\n- {}\n",
          markdown_code(c.stage), c.layer_id, markdown_escaped(c.layer_kind), markdown_escaped(step_text(c)),
          markdown_code(fixture.path), markdown_code(c.candidate), markdown_code(c.mode), name_of(c.result.verdict),
          markdown_escaped(c.result.reason), markdown_escaped(error_text(c.result)));
      if (c.location.has_value()) {
        text += fmt::format("- {}\n", markdown_escaped(*c.location));
      }
      return text + "\n" + markdown_block(c.repro);
    }
  }
  return {};
}

std::string failures(const RunReport& report) {
  std::string rows;
  std::size_t listed = 0;
  std::size_t all = 0;
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (info_of(c.result.verdict).effect == VerdictEffect::none) {
        continue;
      }
      ++all;
      if (listed == kMostListed) {
        continue;
      }
      ++listed;
      rows += fmt::format("| {} | {} | {} | {} | {} | {} | {}{} | {} |\n", markdown_code(fixture.path),
                          markdown_escaped(step_text(c)), c.layer_id, markdown_code(c.candidate), markdown_code(c.mode),
                          markdown_code(c.stage), name_of(c.result.verdict),
                          c.known_failure.has_value() ? " (known)" : "", markdown_escaped(c.result.reason));
    }
  }
  if (rows.empty()) {
    return {};
  }
  return "\n| fixture | step | layer | candidate | mode | stage | verdict | reason |\n"
         "| --- | --- | ---: | --- | --- | --- | --- | --- |\n" +
         rows + (all > listed ? fmt::format("\n{} more are not listed here.\n", all - listed) : "");
}

std::string errors(const RunReport& report) {
  std::string text;
  for (const std::string& line : error_lines(report)) {
    text += fmt::format("- {}\n", markdown_escaped(line));
  }
  return text.empty() ? text : "\n" + text;
}

/// What a stage used of its bound in all comparisons that did not fail.
struct StageUse {
  std::string candidate;
  std::string mode;
  std::string stage;
  std::int64_t comparisons = 0;
  std::int64_t mismatches = 0;
  std::optional<double> bound_ratio;
};

std::string headroom(const RunReport& report) {
  std::vector<StageUse> uses;
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (!c.verified()) {
        continue;
      }
      auto use = std::find_if(uses.begin(), uses.end(), [&](const StageUse& u) {
        return u.candidate == c.candidate && u.mode == c.mode && u.stage == c.stage;
      });
      if (use == uses.end()) {
        use = uses.insert(uses.end(), {.candidate = c.candidate, .mode = c.mode, .stage = c.stage, .bound_ratio = {}});
      }
      ++use->comparisons;
      use->mismatches += c.result.mismatches;
      if (c.result.bound_ratio.has_value()) {
        use->bound_ratio = std::max(use->bound_ratio.value_or(0), *c.result.bound_ratio);
      }
    }
  }
  if (uses.empty()) {
    return {};
  }
  std::string rows;
  for (const StageUse& u : uses) {
    rows += fmt::format("| {} | {} | {} | {} | {} | {} |\n", markdown_code(u.candidate), markdown_code(u.mode),
                        markdown_code(u.stage), u.comparisons, u.mismatches,
                        u.bound_ratio.has_value() ? fmt::format("{:.3f}", *u.bound_ratio) : "exact");
  }
  return "\n<details><summary>What passed, and how much of its bound each stage used</summary>\n\n"
         "| candidate | mode | stage | comparisons | elements that differ | largest error / bound |\n"
         "| --- | --- | --- | ---: | ---: | ---: |\n" +
         rows + "\n</details>\n";
}

}  // namespace

std::string markdown_text(const RunReport& report) {
  std::string text = headline(report);
  for (const std::string& section : {first_failure_text(report), failures(report), errors(report), headroom(report)}) {
    if (text.size() + section.size() <= kMostBytes) {
      text += section;
    } else {
      text += "\nThe rest is too long for a comment.\n";
      break;
    }
  }
  return text;
}

}  // namespace attndiff
