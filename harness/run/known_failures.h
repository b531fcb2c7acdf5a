#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/report.h"
#include "reference/contract/stage.h"

namespace attndiff {

/// A failure that somebody answers for until a date: one [[known]] table of a known-failures file.
struct KnownFailure {
  std::string fixture;  ///< shell pattern (*, ?, [...]) for the fixture's file name, without folders
  std::string stage;
  std::optional<std::int64_t> layer;     ///< layer_id; nothing: every layer
  std::optional<std::int64_t> step;      ///< index in the fixture; nothing: every step
  std::optional<std::string> candidate;  ///< backend's name; nothing: every candidate
  std::string owner;
  std::string reason;
  std::chrono::year_month_day expires;  ///< the last day on which it excuses anything

  /// "fixture a*.h5, stage idx, layer 2": what it covers.
  [[nodiscard]] std::string scope() const;
  /// "known failure, OWNER until 2027-01-31: REASON", for the line of an excused comparison.
  [[nodiscard]] std::string text() const;
};

/// Reads a known-failures file. Throws Error(input) naming file, key, expected and found for: a file that cannot be
/// read, what is not TOML, an unknown key, a missing or blank one (only layer, step and candidate are optional), a
/// wrong type, a stage the family does not have, a negative layer or step, a date that no calendar has.
[[nodiscard]] std::vector<KnownFailure> read_known_failures(const std::string& path, const ModelFamily& family);

/// The same from text; `source` stands for the file in messages.
[[nodiscard]] std::vector<KnownFailure> parse_known_failures(std::string_view toml, const std::string& source,
                                                             const ModelFamily& family);

/// A failing comparison and the entry that names it, as indices into report, fixture and list.
struct KnownFailureMatch {
  std::size_t fixture = 0;
  std::size_t comparison = 0;
  std::size_t entry = 0;

  friend bool operator==(const KnownFailureMatch&, const KnownFailureMatch&) = default;
};

/// What a list means for one run.
struct KnownFailureFindings {
  std::vector<KnownFailureMatch> excused;  ///< each failing comparison once, by the first unexpired entry naming it
  std::vector<KnownFailureMatch> lapsed;   ///< failing comparisons that only expired entries name: they still fail
  std::vector<std::size_t> expired;        ///< entries past their date, whether or not they name a failure
  std::vector<std::size_t> stale;          ///< unexpired entries that excused nothing in this run
};

/// Holds the failing comparisons of a run against a list. An entry excuses through the day it expires and nothing
/// after. Comparisons that do not fail are never matched; the report is not changed.
[[nodiscard]] KnownFailureFindings match_known_failures(const RunReport& report, std::span<const KnownFailure> entries,
                                                        std::chrono::year_month_day today);

/// A line for each expired and each stale entry, for people; empty when there is neither.
[[nodiscard]] std::string known_failure_notes(std::span<const KnownFailure> entries,
                                              const KnownFailureFindings& findings);

/// The calendar day in UTC, so that a list expires everywhere at once.
[[nodiscard]] std::chrono::year_month_day today_utc();

}  // namespace attndiff
