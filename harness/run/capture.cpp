#include "harness/run/capture.h"

#include "harness/backends/transfer.h"

namespace attndiff {

Interest Capture::interest(const LayerCall&, const StageInfo& stage) {
  return wanted_(stage) ? Interest::read : Interest::nothing;
}

void Capture::on_stage(const LayerCall&, StageView& view, Stream stream) {
  Tensor& value = values_[view.stage.id];
  value = Tensor(view.value.dtype, view.value.shape);
  enqueue_download(view.value, value, stream);
}

const Tensor* Capture::find(int stage) const {
  const auto it = values_.find(stage);
  return it == values_.end() ? nullptr : &it->second;
}

}  // namespace attndiff
