#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/contract/config.h"
#include "reference/topk.h"

namespace attndiff::reference {

/// The set of the k largest, ascending: topk_set, unless a test puts a wrong one in its place.
using TopkSet = std::function<std::vector<std::int32_t>(std::span<const float>, std::int64_t)>;

/// Candidate mask of one query over `scores.size()` positions, 0 or 1 each. `scores` are -inf at p >= visible.
/// A block's score is the maximum of its scores; the block of the newest visible position is pinned; the best
/// cand_topk_blocks blocks whose score is above -inf are kept whole.
void candidate_mask_row(std::span<const float> scores, std::int64_t visible, const ModelConfig& config,
                        std::span<std::uint8_t> mask, const TopkSet& topk = topk_set);

/// Picks of one query, ascending, -1 for a pick at p >= visible. `scores` are -inf wherever a mask says so; a pick that
/// is -inf but visible stays in, as in the released model. `picks` has min(index_topk, len) entries.
void select_row(std::span<const float> scores, std::int64_t visible, std::span<std::int32_t> picks,
                const TopkSet& topk = topk_set);

/// A pick as an entry of `idx`: `offset` window rows come before; -1 stays -1.
[[nodiscard]] std::int32_t offset_pick(std::int32_t pick, std::int64_t offset) noexcept;

}  // namespace attndiff::reference
