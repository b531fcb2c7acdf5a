#include "harness/run/capture.h"

#include "harness/backends/transfer.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

const Tensor* found(const std::map<int, Tensor>& tensors, int stage) {
  const auto it = tensors.find(stage);
  return it == tensors.end() ? nullptr : &it->second;
}

void keep(const StageView& view, Stream stream, StageValues& into) {
  into.value(view.stage.id) = enqueue_download(view.value, stream);
  if (view.unrounded.data != nullptr) {
    into.unrounded(view.stage.id) = enqueue_download(view.unrounded, stream);
  }
}

}  // namespace

const Tensor* StageValues::find(int stage) const { return found(values_, stage); }
const Tensor* StageValues::find_unrounded(int stage) const { return found(unrounded_, stage); }

Interest Capture::interest(const LayerCall&, const StageInfo& stage) { return wanted_(stage); }

void Capture::on_stage(const LayerCall&, StageView& view, Stream stream) { keep(view, stream, stages_); }

Interest Substitution::interest(const LayerCall&, const StageInfo& stage) {
  const Interest replaced = given_(stage) != nullptr ? Interest::replace : Interest::nothing;
  return kept_(stage) | replaced;
}

void Substitution::on_stage(const LayerCall&, StageView& view, Stream stream) {
  if (wants(kept_(view.stage), Interest::read)) {
    keep(view, stream, stages_);
  }
  if (const Tensor* value = given_(view.stage)) {
    if (!(value->shape() == view.value.shape) || value->dtype() != view.value.dtype) {
      throw Error(ErrorKind::refused, {.file = {},
                                       .object = "stage " + std::string(view.stage.name),
                                       .problem = "cannot be replaced by a tensor of another form",
                                       .expected = std::string(name_of(view.value.dtype)) + view.value.shape.text(),
                                       .found = std::string(name_of(value->dtype())) + value->shape().text()});
    }
    enqueue_upload(*value, view.value, stream);
  }
}

}  // namespace attndiff
