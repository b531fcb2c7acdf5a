#pragma once

#include <cstddef>
#include <string>

namespace attndiff {

/// How far a run is.
struct ProgressState {
  std::size_t fixtures = 0;     ///< of the run
  std::size_t finished = 0;     ///< fixtures
  std::size_t calls = 0;        ///< layer calls of the fixture in hand; 0: not known yet
  std::size_t calls_begun = 0;  ///< of them
  double seconds = 0;           ///< since the run began

  /// Part of the run that is over, fixtures being taken as equally long.
  [[nodiscard]] double fraction() const noexcept;
};

/// One line: a bar, the part that is over, fixtures, and, once a part is over that tells something, the time left.
[[nodiscard]] std::string progress_line(const ProgressState& state);

/// "45 s", "3 min 20 s", "2 h 5 min".
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace attndiff
