#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

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

}  // namespace attndiff
