#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/compare.h"
#include "harness/compare/detail.h"
#include "harness/compare/verdict.h"
#include "reference/contract/error.h"

namespace attndiff {

/// One comparison of a run, with where it was made.
struct ComparisonRecord {
  std::size_t step = 0;  ///< index in the fixture
  std::int64_t start_pos = 0;
  std::int64_t tokens = 0;
  std::int64_t layer_id = 0;
  std::string layer_kind;  ///< kind_of(role)
  std::string candidate;   ///< the backend's name
  std::string mode;        ///< "free" or "lockstep"
  std::string stage;
  Comparison result;
  std::string tolerance;                             ///< StageTolerance::text()
  std::string repro;                                 ///< a command that makes just this comparison
  std::optional<std::string> location;               ///< which rows, heads, tiles the elements beyond their bound are
  std::optional<std::string> known_failure;          ///< why a failing comparison is excused, with owner and date
  std::shared_ptr<const ComparisonDetail> detail{};  ///< for the worst comparisons of a run only, else null

  /// It fails the run: a failing verdict that no list of known failures excuses.
  [[nodiscard]] bool fails() const noexcept;
  /// Something was compared here and agreed.
  [[nodiscard]] bool verified() const noexcept;
};

/// Seconds that something took in one fixture, summed over its calls: a backend's calls, with the stages that were
/// asked for copied to the host; counting coverage; judging a run. Reading the fixture is in none of them.
struct Timing {
  std::string backend;
  std::string mode;             ///< "reference", "coverage"; "free", "production", "lockstep", "repeat", the
                                ///< last without calls of its own; and each of these with " judging"
  std::vector<double> seconds;  ///< one for each repetition
};

struct FixtureReport {
  std::string path;
  Verdict verdict = Verdict::unobserved;  ///< overall_verdict() of what follows
  std::optional<std::string> error;       ///< why the fixture, or the rest of it, could not be judged
  std::vector<ComparisonRecord> comparisons;
  std::map<std::string, std::int64_t, std::less<>> coverage;  ///< what the fixture exercises, by counter
  std::vector<std::string> uncovered;  ///< what it declares that it must exercise, and does not: its own fault
  std::vector<Timing> timings{};       ///< the reference's, then each candidate's by mode; empty where none was taken
};

/// Something that went wrong outside every fixture: a backend that is not available, a report that cannot be written.
struct RunProblem {
  ErrorKind kind = ErrorKind::internal;
  std::string message;
};

struct RunReport {
  std::string tool_version;
  std::string reference;
  std::vector<std::string> candidates;
  std::string mode;
  std::vector<FixtureReport> fixtures;
  std::vector<std::string> unanswered;  ///< what was asked for by name and never compared: "stage lse", "layer 99"
  std::vector<RunProblem> problems;
  std::map<std::string, std::string, std::less<>> settings{};  ///< options of the run that differ from the defaults
  std::map<std::string, std::string, std::less<>> backends{};  ///< version, device and driver by backend name
};

/// How a run ended, in words; the command line gives each its exit code.
enum class ExitReason : std::uint8_t {
  passed,            ///< everything asked for was compared, at least one comparison was made, all passed
  failed,            ///< a comparison failed, whatever else happened
  usage_or_input,    ///< wrong usage, or a fixture that cannot be read
  unavailable,       ///< a backend is not available here
  nothing_verified,  ///< a fixture, or the run, in which nothing was compared
  internal,          ///< a defect of this program, or a result that could not be written
};
inline constexpr std::size_t kExitReasonCount = 6;

[[nodiscard]] std::string_view name_of(ExitReason reason) noexcept;
[[nodiscard]] std::string_view name_of(ErrorKind kind) noexcept;

/// What an error outside every fixture makes of a run.
[[nodiscard]] ExitReason reason_of(ErrorKind kind) noexcept;

/// What a fixture amounts to: the worst failing verdict of its comparisons (crashed, fail, missing, uncertified,
/// degenerate), else `error` where it has one, else explained, tie or pass, else `unobserved`: nothing was compared.
[[nodiscard]] Verdict overall_verdict(const FixtureReport& fixture) noexcept;

/// `failed` if anything failed; otherwise the first of internal, unavailable, usage_or_input, nothing_verified that
/// applies. Nothing is verified where a fixture has no verified comparison with one of the run's candidates: not
/// everything that was asked for was compared.
[[nodiscard]] ExitReason exit_reason(const RunReport& report) noexcept;

/// Counts over a run.
struct Totals {
  std::array<std::int64_t, kVerdictCount> by_verdict{};  ///< comparisons, and fixtures in error
  /// Fixtures by what each alone would make of the run, and problems by their kind.
  std::array<std::int64_t, kExitReasonCount> by_exit_reason{};
  std::int64_t comparisons = 0;  ///< with elements on both sides
  std::int64_t elements = 0;
};
[[nodiscard]] Totals totals_of(const RunReport& report) noexcept;

/// The first comparison that fails the run, in the order of the report, or nullptr.
[[nodiscard]] const ComparisonRecord* first_failure(const RunReport& report) noexcept;

}  // namespace attndiff
