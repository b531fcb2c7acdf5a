#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace attndiff::fuzzing {

/// Choices that follow from a seed.
class Random {
 public:
  explicit Random(unsigned seed) : bits_(seed) {}

  [[nodiscard]] std::uint64_t below(std::uint64_t count) { return bits_() % count; }
  [[nodiscard]] bool chance(std::uint64_t one_in) { return below(one_in) == 0; }

  template <typename List>
  [[nodiscard]] const auto& any(const List& items) {
    return items[below(std::size(items))];
  }

  /// An integer from where readers go wrong: small ones, powers of two and their neighbours, the ends.
  [[nodiscard]] std::int64_t integer() {
    switch (below(4)) {
      case 0:
        return static_cast<std::int64_t>(below(70)) - 2;
      case 1:
        return (std::int64_t{1} << below(63)) + static_cast<std::int64_t>(below(3)) - 1;
      case 2:
        return chance(2) ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
      default:
        return static_cast<std::int64_t>(bits_());
    }
  }

  [[nodiscard]] double real() {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr std::array kValues{0.0,  -0.0,  1.0,    -1.0, 1e-20, 1e38,
                                 1e39, 1e300, 1e-310, kInf, -kInf, std::numeric_limits<double>::quiet_NaN()};
    return any(kValues);
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace attndiff::fuzzing
