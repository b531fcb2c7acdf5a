#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "harness/compare/compare.h"
#include "reference/thread_pool.h"

namespace attndiff {

/// A tensor's rows in parts, the same for every number of threads, so that what is summed over parts is as well.
class RowParts {
 public:
  explicit RowParts(std::int64_t rows) : rows_(rows), size_(std::max<std::int64_t>(1, (rows + kMost - 1) / kMost)) {}

  [[nodiscard]] std::size_t count() const noexcept { return static_cast<std::size_t>((rows_ + size_ - 1) / size_); }

  /// Calls body(part, first row, row after the last) for each part; `pool` may be null.
  void run(reference::ThreadPool* pool,
           const std::function<void(std::size_t, std::int64_t, std::int64_t)>& body) const {
    const auto one = [&](std::int64_t part) {
      body(static_cast<std::size_t>(part), part * size_, std::min(rows_, (part + 1) * size_));
    };
    if (pool != nullptr) {
      pool->parallel_for(static_cast<std::int64_t>(count()), one);
      return;
    }
    for (std::int64_t part = 0; part < static_cast<std::int64_t>(count()); ++part) {
      one(part);
    }
  }

 private:
  static constexpr std::int64_t kMost = 256;

  std::int64_t rows_;
  std::int64_t size_;  ///< rows of a part
};

/// How many violations each part keeps, so that all of them hold little more than kMostBad together and the first
/// kMostBad are among them: parts are taken in their order, so nearly all before a part are done when it begins.
class BadRoom {
 public:
  explicit BadRoom(std::size_t parts) : kept_(parts) {}

  /// What those before a part that are done leave of kMostBad.
  [[nodiscard]] std::size_t left(std::size_t part) const {
    std::size_t before = 0;
    for (std::size_t p = 0; p < part; ++p) {
      before += kept_[p].load(std::memory_order_relaxed);
    }
    return kMostBad - std::min(kMostBad, before);
  }

  void take(std::size_t part, std::size_t count) { kept_[part].store(count, std::memory_order_relaxed); }

 private:
  std::vector<std::atomic<std::size_t>> kept_;
};

}  // namespace attndiff
