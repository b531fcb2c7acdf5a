#pragma once

#include "reference/contract/config.h"
#include "reference/contract/plan.h"

namespace attndiff::device {

/// What the CUDA implementation publishes and accepts in a call: every stage that exists in it, each a segment of its
/// own. Accumulation and softmax weights are float32, and one softmax runs over all rows of a query.
[[nodiscard]] Plan plan_of(const ModelConfig& config, const LayerRole& role, const CallShape& call);

}  // namespace attndiff::device
