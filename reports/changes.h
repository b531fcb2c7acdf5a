#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/compare/report.h"

namespace attndiff {

/// A comparison that two reports have, or one of them. Fixture, candidate, mode, step, layer and stage name it.
struct ComparisonChange {
  std::string fixture;
  const ComparisonRecord* before = nullptr;  ///< null: only the new report has it
  const ComparisonRecord* after = nullptr;   ///< null: only the old report has it
};

/// A fixture whose state as a whole changed.
struct FixtureChange {
  std::string fixture;
  std::string what;  ///< "in error now: ...", "not in the new report"
};

/// One backend's time in one fixture in both reports.
struct TimingChange {
  std::string fixture;
  std::string backend;
  std::string mode;
  std::vector<double> before;  ///< seconds, a number for each repetition
  std::vector<double> after;

  [[nodiscard]] double ratio() const;  ///< of the medians, new over old
};

struct ChangeOptions {
  /// How many times more of its bound a comparison may use before that counts as shrunk headroom.
  double headroom_factor = 2;
};

/// What became of a gate from one run to the next. It refers to both reports, which must outlive it.
struct Changes {
  std::size_t in_common = 0;  ///< comparisons both reports have
  // Regressions:
  std::vector<ComparisonChange> newly_failing;
  std::vector<ComparisonChange> vanished;  ///< verified or failing before, and neither compared nor failing now
  std::vector<ComparisonChange> shrunk;    ///< used more of their bound, by more than the factor; both pass
  std::vector<FixtureChange> fixtures;     ///< in error, or gone
  // The rest:
  std::vector<ComparisonChange> mended;
  std::vector<ComparisonChange> appeared;
  std::vector<TimingChange> slower;  ///< the two ranges of repetitions do not overlap
  std::vector<TimingChange> faster;
  std::size_t timings_without_spread = 0;  ///< in both reports, and in one of them taken only once: nothing is said
  std::size_t timings_compared = 0;

  [[nodiscard]] bool regressed() const noexcept {
    return !newly_failing.empty() || !vanished.empty() || !shrunk.empty() || !fixtures.empty();
  }
};

/// Bound ratios below this are all alike: headroom shrinks from here on.
inline constexpr double kRatioFloor = 0.05;

/// Compares two reports. A failing comparison that a list of known failures excuses does not count as failing. Where a
/// comparison stands twice in a report, the worse one counts.
[[nodiscard]] Changes changes_between(const RunReport& before, const RunReport& after, const ChangeOptions& options);

}  // namespace attndiff
