#include "reference/window.h"

#include <algorithm>

namespace attndiff::reference {

std::int64_t ring_slot(std::int64_t position, std::int64_t window) noexcept { return position % window; }

std::int64_t first_kept_token(std::int64_t tokens, std::int64_t window) noexcept {
  return std::max<std::int64_t>(0, tokens - window);
}

void window_indices(const CallShape& call, std::int64_t window, std::int64_t t, std::span<std::int32_t> out) noexcept {
  const auto columns = static_cast<std::int64_t>(out.size());
  for (std::int64_t j = 0; j < columns; ++j) {
    std::int64_t entry = 0;
    std::int64_t newest = 0;
    if (call.prefill()) {
      entry = std::max<std::int64_t>(0, t - window + 1) + j;
      newest = t;
    } else {
      entry = (call.start_pos % window + 1 + j) % window;
      newest = call.start_pos;
    }
    out[static_cast<std::size_t>(j)] = entry > newest ? -1 : static_cast<std::int32_t>(entry);
  }
}

}  // namespace attndiff::reference
