#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/contract/config.h"
#include "reference/contract/tensor.h"
#include "reference/thread_pool.h"

namespace attndiff::device {

/// One index source's scores on the host, before any mask.
struct ScoreRows {
  const ModelConfig& config;
  const LayerRole& role;
  CallShape call;
  std::span<const Bf16> scores;  ///< [tokens, length]
  std::int64_t length = 0;
};

/// Scores of query `t` in float32, -inf at positions from `visible` on and at those that `mask` leaves out; null where
/// no mask applies.
[[nodiscard]] std::vector<float> masked_scores(const ScoreRows& rows, std::int64_t t, std::int64_t visible,
                                               const Tensor* mask);

/// Candidate mask u8 [tokens, length] by the reference's own rule, rows in parallel.
[[nodiscard]] Tensor candidate_mask(const ScoreRows& rows, reference::ThreadPool& pool);

/// Selection i32 [tokens, min(index_topk, length)], ascending, -1 absent, without offset, by the reference's own top-k.
/// `mask` u8 [tokens, length] limits the positions; null where none applies.
[[nodiscard]] Tensor select_positions(const ScoreRows& rows, const Tensor* mask, reference::ThreadPool& pool);

}  // namespace attndiff::device
