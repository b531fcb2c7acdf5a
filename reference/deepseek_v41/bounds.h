#pragma once

#include <cstdint>
#include <optional>

#include "reference/bound_inputs.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff::deepseek_v41 {

/// How far a correct implementation's value may lie from the reference's unrounded one before it is rounded itself. The
/// test is then |candidate - unrounded| <= half a unit of the candidate + slack.
/// Nothing for a stage that its inputs determine exactly: codes, states copied from codes, masks, positions.
///
/// Sums of K products: kSumFactor * sqrt(K) * 2^-24 * |w| * |x| in 2-norms. Rounding errors of a sum act like
/// independent ones of mean zero, and then stay within lambda * sqrt(K) * u * |w|.|x| but for a probability of
/// 2 K exp(-lambda^2 (1 - u)^2 / 2) (Higham, Mary, "A new approach to probabilistic rounding error analysis", SIAM
/// J. Sci. Comput. 41(5), 2019: theorem 2.4 for a product of K factors 1 + delta, theorem 3.1 for inner products).
/// Where a value was rounded to bf16 on the way, the slack before that rounding becomes the distance by which the
/// rounded value can move, mostly nothing; such moves, too, are combined as independent where many of them enter one
/// number.
[[nodiscard]] std::optional<StageSlack> stage_slack(int stage, const BoundInputs& inputs);

/// How many products the longest float32 sum behind an element of the stage has; 0 for a stage without one.
[[nodiscard]] std::int64_t stage_terms(int stage, const ModelConfig& config, const LayerRole& role,
                                       const CallShape& call);

/// lambda of the candidate's sum, 8, and 2 more for the reference's own float32 sum, which runs in blocks.
inline constexpr float kSumFactor = 10.0F;

/// Unit roundoff of float32.
inline constexpr float kUnitRoundoff = 0x1p-24F;

}  // namespace attndiff::deepseek_v41
