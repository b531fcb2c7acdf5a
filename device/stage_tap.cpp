#include "device/stage_tap.h"

#include <string>

#include "reference/contract/error.h"

namespace attndiff::device {

StageTap::StageTap(const LayerCall& call, std::span<const StageInfo> stages, Observer& observer, int device,
                   cudaStream_t stream)
    : call_(call),
      stages_(stages),
      observer_(observer),
      place_{.kind = Place::Kind::cuda, .device = device},
      stream_(stream),
      interests_(stages.size(), Interest::nothing) {
  for (const StageInfo& stage : stages) {
    if (stage.shape(call.config, call.role, call.shape)) {
      interests_[static_cast<std::size_t>(stage.id)] = observer.interest(call, stage);
    }
  }
}

Shape StageTap::shape(int id) const {
  const StageInfo& stage = stages_[static_cast<std::size_t>(id)];
  const auto shape = stage.shape(call_.config, call_.role, call_.shape);
  if (!shape) {
    throw Error(ErrorKind::internal, "the call has no stage " + std::string(stage.name));
  }
  return *shape;
}

void StageTap::offer(int id, void* data) {
  if (!wanted(id)) {
    return;
  }
  const StageInfo& stage = stages_[static_cast<std::size_t>(id)];
  const Shape extents = shape(id);
  StageView view{
      .stage = stage,
      .value = {.dtype = stage.dtype, .shape = extents, .strides = extents.strides(), .data = data, .place = place_},
      .unrounded = {}};
  observer_.on_stage(call_, view, Stream{stream_});
}

}  // namespace attndiff::device
