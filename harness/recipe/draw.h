#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

namespace attndiff {

/// Choices from a seed. The engine's numbers are fixed by the C++ standard; its distributions are not, and not used.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  /// A number in [0, count).
  [[nodiscard]] std::uint64_t below(std::uint64_t count) { return engine_() % count; }
  /// A number in [low, high].
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  /// True once in `times`.
  [[nodiscard]] bool once_in(std::uint64_t times) { return below(times) == 0; }
  /// One of the values; naming one several times makes it likelier.
  template <typename T>
  [[nodiscard]] T of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace attndiff
