#pragma once

#include <string>

#include "harness/compare/compare.h"
#include "reference/thread_pool.h"

namespace attndiff {

/// Compares a stage in lockstep with its derived bound: |candidate - y| <= half a unit of the candidate + slack, where
/// y is the reference before its last rounding (`unrounded`; null where the stage is float32 and so not rounded again)
/// and `slack` what a correct implementation may be off before it rounds.
///
/// Beside it, for each row, what a correct rounding leaves behind and a systematic fault does not: the root mean square
/// of candidate - y must not exceed what one rounding predicts, sqrt(mean(unit^2 / 12)) (a rounding error is uniform
/// over a unit), and their sum must not exceed the standard deviation that this gives it, each by kSigmas standard
/// deviations and a quarter of the slack, which stands for eight, or by one rounding on the way (`slack.moves`), whose
/// move comes whole or not at all.
///
/// NaN, infinities, shapes, types and constants are judged as compare() judges them; a slack that is not finite allows
/// nothing but the reference's own value. `mismatches` counts elements that differ from the reference's rounded value,
/// for information. The result does not depend on how many threads the pool has.
[[nodiscard]] Comparison compare_bounded(const StageInfo& stage, const Tensor& reference, const Tensor* unrounded,
                                         const StageSlack& slack, const Tensor& candidate, reference::ThreadPool& pool);

/// Standard deviations that a row's mean square and sum may lie off: one row in 10^9 by chance.
inline constexpr double kSigmas = 6;

/// The rule in words, for tables and reports. `terms` is how many products the stage's longest float32 sum has, 0 for
/// none; then the worst-case bound gamma_K = K u / (1 - K u), u = 2^-24, is named beside it, for information only.
[[nodiscard]] std::string bounded_text(const StageInfo& stage, std::int64_t terms);

}  // namespace attndiff
