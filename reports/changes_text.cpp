#include "reports/changes_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "reports/escape.h"
#include "reports/html_assets.h"
#include "reports/text_table.h"
#include "reports/words.h"

namespace attndiff {
namespace {

/// One kind of change as a table.
struct Section {
  std::string title;
  bool worse = false;  ///< a regression
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

std::string ratio_text(const ComparisonRecord& c) {
  return c.result.bound_ratio.has_value() ? fmt::format("{:.3f}", *c.result.bound_ratio) : "exact";
}

/// What a comparison said, and what it says.
std::string state_text(const ComparisonRecord* c) {
  if (c == nullptr) {
    return "absent";
  }
  return std::string(name_of(c->result.verdict)) + (c->known_failure.has_value() ? " (known)" : "");
}

Section of_comparisons(std::string title, bool worse, const std::vector<ComparisonChange>& changes, bool ratios) {
  Section s{.title = std::move(title),
            .worse = worse,
            .head = {"fixture", "step", "layer", "candidate", "mode", "stage",
                     ratios ? "error / bound before" : "before", "now", "reason"},
            .rows = {}};
  for (const ComparisonChange& change : changes) {
    const ComparisonRecord& c = change.after != nullptr ? *change.after : *change.before;
    s.rows.push_back({change.fixture, step_text(c), fmt::format("{} ({})", c.layer_id, c.layer_kind), c.candidate,
                      c.mode, c.stage, ratios ? ratio_text(*change.before) : state_text(change.before),
                      ratios ? ratio_text(*change.after) : state_text(change.after),
                      change.after != nullptr ? change.after->result.reason : "no longer compared"});
  }
  return s;
}

std::string seconds_text(const std::vector<double>& seconds) {
  std::vector<std::string> parts;
  parts.reserve(seconds.size());
  for (const double s : seconds) {
    parts.push_back(fmt::format("{:.3g}", s));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Section of_timings(std::string title, const std::vector<TimingChange>& timings) {
  Section s{.title = std::move(title),
            .worse = false,
            .head = {"fixture", "backend", "mode", "seconds before", "seconds now", "now / before"},
            .rows = {}};
  for (const TimingChange& t : timings) {
    s.rows.push_back({t.fixture, t.backend, t.mode, seconds_text(t.before), seconds_text(t.after),
                      fmt::format("{:.2f}", t.ratio())});
  }
  return s;
}

std::vector<Section> sections_of(const Changes& c) {
  Section fixtures{.title = "Fixtures that got worse", .worse = true, .head = {"fixture", "what"}, .rows = {}};
  for (const FixtureChange& f : c.fixtures) {
    fixtures.rows.push_back({f.fixture, f.what});
  }
  std::vector<Section> all{of_comparisons("Newly failing", true, c.newly_failing, false),
                           of_comparisons("No longer compared", true, c.vanished, false),
                           std::move(fixtures),
                           of_comparisons("Headroom shrunk", true, c.shrunk, true),
                           of_comparisons("Mended", false, c.mended, false),
                           of_comparisons("Newly compared", false, c.appeared, false),
                           of_timings("Slower than the spread of repetitions", c.slower),
                           of_timings("Faster than the spread of repetitions", c.faster)};
  std::erase_if(all, [](const Section& s) { return s.rows.empty(); });
  return all;
}

std::string timings_sentence(const Changes& c) {
  if (c.timings_compared + c.timings_without_spread == 0) {
    return "No timing is in both reports.";
  }
  std::string text = fmt::format("{} timings compared.", c.timings_compared);
  if (c.timings_without_spread > 0) {
    text += fmt::format(" {} were taken only once, so that their spread is not known and nothing is said about them.",
                        c.timings_without_spread);
  }
  return text;
}

std::string counts_sentence(const Changes& c) {
  return fmt::format(
      "{} comparisons in common: {} newly failing, {} no longer compared, {} with shrunk headroom, {} mended; {} newly "
      "compared; {} fixtures got worse",
      c.in_common, c.newly_failing.size(), c.vanished.size(), c.shrunk.size(), c.mended.size(), c.appeared.size(),
      c.fixtures.size());
}

std::string_view outcome(const Changes& c) noexcept {
  if (c.in_common == 0) {
    return "NOTHING IN COMMON: no comparison is in both reports";
  }
  return c.regressed() ? "REGRESSED" : "no regression";
}

/// Rows that a comment or page lists of one section.
constexpr std::size_t kMostRows = 50;

}  // namespace

std::string changes_table(const Changes& changes, bool colour) {
  std::string text;
  for (const Section& s : sections_of(changes)) {
    std::vector<TextTable::Column> columns;
    for (const std::string& title : s.head) {
      columns.push_back({.title = title});
    }
    TextTable table(columns);
    for (const std::vector<std::string>& row : s.rows) {
      table.add(row);
    }
    text += s.title + "\n" + table.text() + "\n";
  }
  const char* hue = changes.in_common == 0 ? kYellow : changes.regressed() ? kRed : kGreen;
  text += fmt::format("{}\n{}\n{}\n", timings_sentence(changes), counts_sentence(changes),
                      coloured(std::string(outcome(changes)), colour ? hue : nullptr));
  if (!changes.newly_failing.empty()) {
    text += "\nTo see the first new failure alone:\n" + changes.newly_failing.front().after->repro + "\n";
  }
  return text;
}

std::string changes_markdown(const Changes& changes) {
  constexpr std::size_t kMostBytes = 60000;  // GitHub takes 65536 characters
  std::string text = fmt::format("### attndiff compare: {}\n\n{}. {}\n", outcome(changes),
                                 markdown_escaped(counts_sentence(changes)), timings_sentence(changes));
  if (!changes.newly_failing.empty()) {
    text += "\n" + markdown_block(changes.newly_failing.front().after->repro);
  }
  for (const Section& s : sections_of(changes)) {
    std::string table = fmt::format("\n**{}**\n\n| {} |\n|{}\n", s.title, fmt::join(s.head, " | "), [&] {
      std::string rule;
      for (std::size_t i = 0; i < s.head.size(); ++i) {
        rule += " --- |";
      }
      return rule;
    }());
    for (std::size_t i = 0; i < std::min(kMostRows, s.rows.size()); ++i) {
      std::string row = "|";
      for (const std::string& cell : s.rows[i]) {
        row += " " + markdown_escaped(cell) + " |";
      }
      table += row + "\n";
    }
    if (s.rows.size() > kMostRows) {
      table += fmt::format("\n{} more are not listed here.\n", s.rows.size() - kMostRows);
    }
    if (text.size() + table.size() > kMostBytes) {
      return text + "\nThe rest is too long for a comment.\n";
    }
    text += table;
  }
  return text;
}

std::string changes_html(const Changes& changes) {
  const char* shade = changes.in_common == 0 ? "" : changes.regressed() ? "failed" : "passed";
  std::string body;
  for (const Section& s : sections_of(changes)) {
    body += fmt::format("<section{}><h2>{}</h2><div class=\"scroll\"><table><thead><tr>",
                        s.worse ? " class=\"worse\"" : "", xml_escaped(s.title));
    for (const std::string& title : s.head) {
      body += "<th scope=\"col\">" + xml_escaped(title) + "</th>";
    }
    body += "</tr></thead><tbody>\n";
    for (const std::vector<std::string>& row : s.rows) {
      body += "<tr>";
      for (const std::string& cell : row) {
        body += "<td>" + xml_escaped(cell) + "</td>";
      }
      body += "</tr>\n";
    }
    body += "</tbody></table></div></section>\n";
  }
  if (!changes.newly_failing.empty()) {
    body += "<section><h2>How to make the first new failure alone</h2><pre>" +
            xml_escaped(changes.newly_failing.front().after->repro) + "</pre></section>\n";
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>attndiff compare: {0}</title>\n<style>\n{1}\n</style>\n"
      "<script>document.documentElement.dataset.theme = matchMedia(\"(prefers-color-scheme: dark)\").matches ? "
      "\"dark\" "
      ": \"light\";</script>\n</head>\n<body>\n"
      "<header class=\"top {2}\"><div class=\"wrap\"><p class=\"brand\">attndiff compare</p><h1>{0}</h1>"
      "<p>{3}</p><p>{4}</p></div></header>\n<main class=\"wrap\">\n{5}</main>\n</body>\n</html>\n",
      xml_escaped(outcome(changes)), html_assets::style(), shade, xml_escaped(counts_sentence(changes)),
      xml_escaped(timings_sentence(changes)), body);
}

}  // namespace attndiff
