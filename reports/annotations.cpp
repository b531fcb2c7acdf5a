#include "reports/annotations.h"

#include <fmt/format.h>

#include "reports/escape.h"
#include "reports/words.h"

namespace attndiff {
namespace {

std::string annotation(std::string_view level, const std::string& title, const std::string& message) {
  return fmt::format("::{} title={}::{}\n", level, workflow_property(title), workflow_message(message));
}

std::string of(const FixtureReport& fixture, const ComparisonRecord& c) {
  const std::string title =
      fmt::format("attndiff: {} of layer {}, step {}: {}", c.stage, c.layer_id, c.step, name_of(c.result.verdict));
  std::string message = fmt::format("{}, candidate {}, mode {}: {}\n{}", fixture.path, c.candidate, c.mode,
                                    c.result.reason, error_text(c.result));
  if (c.location.has_value()) {
    message += "\n" + *c.location;
  }
  message += c.known_failure.has_value() ? "\n" + *c.known_failure : "";
  return annotation(c.known_failure.has_value() ? "warning" : "error", title, message + "\n" + c.repro);
}

}  // namespace

std::string annotations_text(const RunReport& report) {
  std::string text;
  std::size_t failures = 0;
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (!fails_run(c.result.verdict) || (c.fails() && ++failures > kMostAnnotations)) {
        continue;
      }
      text += of(fixture, c);
    }
  }
  if (failures > kMostAnnotations) {
    text += annotation("error", "attndiff", fmt::format("{} more comparisons fail", failures - kMostAnnotations));
  }
  for (const std::string& line : error_lines(report)) {
    text += annotation("error", "attndiff", line);
  }
  return text;
}

}  // namespace attndiff
