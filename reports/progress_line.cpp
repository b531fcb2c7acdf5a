#include "reports/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace attndiff {

double ProgressState::fraction() const noexcept {
  if (fixtures == 0) {
    return 0;
  }
  const double inside = calls == 0 ? 0 : static_cast<double>(calls_begun) / static_cast<double>(calls);
  return std::min(1.0, (static_cast<double>(finished) + inside) / static_cast<double>(fixtures));
}

std::string progress_line(const ProgressState& state) {
  constexpr int kWidth = 24;
  constexpr int kPercent = 100;
  constexpr double kTelling = 0.02;
  const double part = state.fraction();
  const int filled = static_cast<int>(std::floor(part * kWidth));
  std::string line = fmt::format("[{}{}] {:3d} %  fixture {} of {}", std::string(static_cast<std::size_t>(filled), '#'),
                                 std::string(static_cast<std::size_t>(kWidth - filled), '-'),
                                 static_cast<int>(std::floor(part * kPercent)),
                                 std::min(state.finished + 1, state.fixtures), state.fixtures);
  if (part >= kTelling) {
    line += fmt::format(", about {} left", duration_text(state.seconds * (1 - part) / part));
  }
  return line;
}

std::string duration_text(double seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 3600;
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < kMinute) {
    return fmt::format("{} s", whole);
  }
  if (whole < kHour) {
    return fmt::format("{} min {} s", whole / kMinute, whole % kMinute);
  }
  return fmt::format("{} h {} min", whole / kHour, whole % kHour / kMinute);
}

}  // namespace attndiff
