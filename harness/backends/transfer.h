#pragma once

#include "reference/contract/observer.h"
#include "reference/contract/tensor.h"

namespace attndiff {

/// Copies a view, wherever it lives, into a host tensor of the same type and shape. From the host the copy is done at
/// once; from a device it is enqueued on the stream and `to` must live until that has run.
void enqueue_download(const TensorView& from, Tensor& to, Stream stream);

}  // namespace attndiff
