#include "reports/html.h"

#include <nlohmann/json.hpp>

#include "reports/escape.h"
#include "reports/html_assets.h"
#include "reports/html_data.h"
#include "reports/words.h"

namespace attndiff {
namespace {

/// The first failure in a sentence, for a reader without JavaScript.
std::string first_failure_text(const RunReport& report) {
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      if (c.fails()) {
        return "stage " + c.stage + " of layer " + std::to_string(c.layer_id) + " in step " + step_text(c) + " of " +
               fixture.path + " fails: " + c.result.reason;
      }
    }
  }
  return "no comparison fails.";
}

}  // namespace

std::string html_text(const RunReport& report) {
  const ExitReason reason = exit_reason(report);
  const char* outcome = reason == ExitReason::passed   ? "passed"
                        : reason == ExitReason::failed ? "failed"
                                                       : "not-passed";
  const std::string sentence(sentence_of(reason));
  const std::string data = html_data(report).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return filled(html_assets::page(), {{"TITLE", xml_escaped("attndiff: " + sentence)},
                                      {"OUTCOME", outcome},
                                      {"SENTENCE", xml_escaped(sentence)},
                                      {"TOTALS", xml_escaped(totals_text(report))},
                                      {"FIRST", xml_escaped(first_failure_text(report))},
                                      {"STYLE", std::string(html_assets::style())},
                                      {"SCRIPT", std::string(html_assets::script())},
                                      {"DATA", script_safe(data)}});
}

std::string filled(std::string_view text, const std::map<std::string, std::string, std::less<>>& values) {
  constexpr std::string_view kOpen = "{{";
  constexpr std::string_view kClose = "}}";
  std::string out;
  while (true) {
    const std::size_t open = text.find(kOpen);
    const std::size_t close = open == std::string_view::npos ? open : text.find(kClose, open);
    if (close == std::string_view::npos) {
      return out.append(text);
    }
    const auto value = values.find(text.substr(open + kOpen.size(), close - open - kOpen.size()));
    out += text.substr(0, open);
    if (value != values.end()) {
      out += value->second;
    }
    text.remove_prefix(close + kClose.size());
  }
}

}  // namespace attndiff
