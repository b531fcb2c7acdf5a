#include "device/plan.h"

#include "reference/contract/families.h"

namespace attndiff::device {

Plan plan_of(const ModelConfig& config, const LayerRole& role, const CallShape& call) {
  Plan plan;
  for (const StageInfo& stage : family_named(config.family).stages) {
    if (stage.shape(config, role, call)) {
      plan.segments.push_back(
          {.stages = {stage.id}, .publishes = {stage.id}, .accepts = {stage.id}, .skipped_roundings = {}});
    }
  }
  return plan;
}

}  // namespace attndiff::device
