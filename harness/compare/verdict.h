#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace attndiff {

/// What was found out about one comparison, or about a fixture as a whole. Each word has one written definition,
/// which VerdictInfo carries.
enum class Verdict : std::uint8_t {
  pass,
  tie,
  explained,
  unobserved,
  fail,
  missing,
  degenerate,
  uncertified,
  crashed,
  error,
};
inline constexpr std::size_t kVerdictCount = 10;

/// What a verdict does to a run.
enum class VerdictEffect : std::uint8_t {
  none,       ///< the run can still pass
  fails_run,  ///< the comparison failed, whatever else happened
  bad_input,  ///< the fixture's own fault: reported as unreadable input, not as a failed comparison
};

struct VerdictInfo {
  Verdict verdict;
  std::string_view name;
  VerdictEffect effect;
  bool verified;  ///< something was compared and agreed: it counts towards "at least one comparison was made"
  std::string_view definition;  ///< one sentence
};

/// Every verdict, in the order of the enumeration.
[[nodiscard]] std::span<const VerdictInfo> verdicts() noexcept;

[[nodiscard]] const VerdictInfo& info_of(Verdict verdict) noexcept;
[[nodiscard]] std::string_view name_of(Verdict verdict) noexcept;
[[nodiscard]] bool fails_run(Verdict verdict) noexcept;

/// The verdict of that name, or nothing.
[[nodiscard]] std::optional<Verdict> verdict_named(std::string_view name) noexcept;

}  // namespace attndiff
