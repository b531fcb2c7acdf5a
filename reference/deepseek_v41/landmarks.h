#pragma once

#include "reference/contract/config.h"
#include "reference/contract/landmarks.h"
#include "reference/contract/stage.h"

namespace attndiff::deepseek_v41 {

/// The landmarks of a stage of this family in one call: rotated tail, quantiser blocks, output groups, ring slots by
/// age, compressed positions by parity. Empty for a stage that the call does not have.
[[nodiscard]] Landmarks landmarks(const StageInfo& stage, const ModelConfig& config, const LayerRole& role,
                                  const CallShape& call);

}  // namespace attndiff::deepseek_v41
