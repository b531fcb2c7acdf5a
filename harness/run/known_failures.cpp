#include "harness/run/known_failures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <sstream>
#include <utility>

#include "harness/files/text_file.h"
#include "harness/recipe/toml_table.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

using std::chrono::year_month_day;

std::string date_text(year_month_day date) {
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

std::string type_of(const toml::node& node) {
  std::ostringstream text;
  text << node.type();
  return text.str();
}

bool blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

/// Reads one [[known]] table.
class EntryReader {
 public:
  EntryReader(const toml::table& raw, const std::string& source, const std::string& path, const ModelFamily& family)
      : raw_(raw), table_(raw, source, path), family_(family) {}

  [[nodiscard]] KnownFailure read() {
    require_known_keys();
    KnownFailure entry;
    entry.fixture = required_text("fixture", "a pattern for the fixture's file name");
    entry.stage = stage();
    entry.layer = index("layer");
    entry.step = index("step");
    if (table_.has("candidate")) {
      entry.candidate = required_text("candidate", "a backend's name");
    }
    entry.owner = required_text("owner", "who answers for it");
    entry.reason = required_text("reason", "a sentence that says why");
    entry.expires = date("expires");
    return entry;
  }

 private:
  void require_known_keys() const {
    static constexpr std::array<std::string_view, 8> kKeys{"fixture",   "stage", "layer",  "step",
                                                           "candidate", "owner", "reason", "expires"};
    for (const std::string& key : table_.keys()) {
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
        throw table_.wrong(key, "unknown key", fmt::format("one of {}", fmt::join(kKeys, ", ")), key);
      }
    }
  }

  [[nodiscard]] std::string required_text(const std::string& key, const std::string& expected) {
    const std::optional<std::string> text = table_.text(key);
    if (!text) {
      throw table_.wrong(key, "missing", expected, "nothing");
    }
    if (blank(*text)) {
      throw table_.wrong(key, "empty", expected, fmt::format("\"{}\"", *text));
    }
    return *text;
  }

  [[nodiscard]] std::string stage() {
    std::string name = required_text("stage", "a stage's name");
    if (family_.find(name) == nullptr) {
      std::vector<std::string_view> names;
      std::transform(family_.stages.begin(), family_.stages.end(), std::back_inserter(names),
                     [](const StageInfo& s) { return s.name; });
      throw table_.wrong("stage", "unknown stage", fmt::format("one of {}", fmt::join(names, ", ")), name);
    }
    return name;
  }

  [[nodiscard]] std::optional<std::int64_t> index(const std::string& key) {
    return table_.integer(key, 0, std::numeric_limits<std::int64_t>::max());
  }

  [[nodiscard]] year_month_day date(const std::string& key) const {
    const toml::node* node = raw_.get(key);
    constexpr const char* kExpected = "a date such as 2027-01-31, without quotes";
    if (node == nullptr) {
      throw table_.wrong(key, "missing", kExpected, "nothing");
    }
    if (!node->is_date()) {
      throw table_.wrong(key, "wrong type", kExpected, type_of(*node));
    }
    const toml::date value = node->as_date()->get();
    const year_month_day day{std::chrono::year(value.year), std::chrono::month(value.month),
                             std::chrono::day(value.day)};
    if (!day.ok()) {
      throw table_.wrong(key, "no such day", kExpected, date_text(day));
    }
    return day;
  }

  const toml::table& raw_;
  TomlTable table_;
  const ModelFamily& family_;
};

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

bool names(const KnownFailure& entry, const std::string& fixture, const ComparisonRecord& record) {
  return entry.stage == record.stage && (!entry.layer || *entry.layer == record.layer_id) &&
         (!entry.step || *entry.step == static_cast<std::int64_t>(record.step)) &&
         (!entry.candidate || *entry.candidate == record.candidate) &&
         fnmatch(entry.fixture.c_str(), fixture.c_str(), 0) == 0;
}

/// The entry to hold a failing comparison against: the first unexpired one that names it, else the first expired one.
std::optional<std::size_t> entry_for(std::span<const KnownFailure> entries, const std::string& fixture,
                                     const ComparisonRecord& record, year_month_day today) {
  std::optional<std::size_t> lapsed;
  for (std::size_t e = 0; e < entries.size(); ++e) {
    if (!names(entries[e], fixture, record)) {
      continue;
    }
    if (today <= entries[e].expires) {
      return e;
    }
    lapsed = lapsed.value_or(e);
  }
  return lapsed;
}

}  // namespace

std::string KnownFailure::scope() const {
  std::string text = fmt::format("fixture {}, stage {}", fixture, stage);
  if (layer) {
    text += fmt::format(", layer {}", *layer);
  }
  if (step) {
    text += fmt::format(", step {}", *step);
  }
  if (candidate) {
    text += fmt::format(", candidate {}", *candidate);
  }
  return text;
}

std::string KnownFailure::text() const {
  return fmt::format("known failure, {} until {}: {}", owner, date_text(expires), reason);
}

std::vector<KnownFailure> parse_known_failures(std::string_view toml, const std::string& source,
                                               const ModelFamily& family) {
  const toml::table root = parse_toml(toml, source);
  TomlTable document(root, source, "");
  const std::size_t count = document.tables("known").size();
  document.finish();
  std::vector<KnownFailure> entries;
  for (std::size_t e = 0; e < count; ++e) {
    const toml::table& raw = *root.get("known")->as_array()->get(e)->as_table();
    entries.push_back(EntryReader(raw, source, fmt::format("known[{}]", e), family).read());
  }
  return entries;
}

std::vector<KnownFailure> read_known_failures(const std::string& path, const ModelFamily& family) {
  return parse_known_failures(read_text_file(path, {.what = "a TOML list of known failures", .megabytes = 10}), path,
                              family);
}

KnownFailureFindings match_known_failures(const RunReport& report, std::span<const KnownFailure> entries,
                                          year_month_day today) {
  KnownFailureFindings findings;
  std::vector<bool> used(entries.size());
  for (std::size_t f = 0; f < report.fixtures.size(); ++f) {
    const std::string fixture = file_name(report.fixtures[f].path);
    for (std::size_t c = 0; c < report.fixtures[f].comparisons.size(); ++c) {
      const ComparisonRecord& record = report.fixtures[f].comparisons[c];
      if (!fails_run(record.result.verdict)) {
        continue;
      }
      const std::optional<std::size_t> entry = entry_for(entries, fixture, record, today);
      if (!entry) {
        continue;
      }
      used[*entry] = true;
      auto& list = today <= entries[*entry].expires ? findings.excused : findings.lapsed;
      list.push_back({.fixture = f, .comparison = c, .entry = *entry});
    }
  }
  for (std::size_t e = 0; e < entries.size(); ++e) {
    if (today > entries[e].expires) {
      findings.expired.push_back(e);
    } else if (!used[e]) {
      findings.stale.push_back(e);
    }
  }
  return findings;
}

std::string known_failure_notes(std::span<const KnownFailure> entries, const KnownFailureFindings& findings) {
  std::string notes;
  for (const std::size_t e : findings.expired) {
    const auto failures = std::count_if(findings.lapsed.begin(), findings.lapsed.end(),
                                        [&](const KnownFailureMatch& match) { return match.entry == e; });
    notes += fmt::format("known failure expired on {}, excuses nothing ({}; owner {}): {} failing comparison{}\n",
                         date_text(entries[e].expires), entries[e].scope(), entries[e].owner, failures,
                         failures == 1 ? "" : "s");
  }
  for (const std::size_t e : findings.stale) {
    notes += fmt::format("known failure matched nothing in this run ({}; owner {}): remove it if it is mended\n",
                         entries[e].scope(), entries[e].owner);
  }
  return notes;
}

year_month_day today_utc() { return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()); }

}  // namespace attndiff
