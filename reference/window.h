#pragma once

#include <cstdint>
#include <span>

#include "reference/contract/config.h"

namespace attndiff::reference {

/// Ring slot of the token at `position`.
[[nodiscard]] std::int64_t ring_slot(std::int64_t position, std::int64_t window) noexcept;

/// First token of a prefill of `tokens` that the ring keeps; it keeps all from there.
[[nodiscard]] std::int64_t first_kept_token(std::int64_t tokens, std::int64_t window) noexcept;

/// Window columns of `idx` for query `t` of a call, -1 for an absent entry. `out` has min(tokens, window) columns in
/// prefill, where they name the chunk's own rows, and `window` columns in decode, where they name ring slots from
/// the oldest on: absent entries can stand first there.
void window_indices(const CallShape& call, std::int64_t window, std::int64_t t, std::span<std::int32_t> out) noexcept;

}  // namespace attndiff::reference
