#pragma once

#include "reference/contract/observer.h"
#include "reference/contract/tensor.h"

namespace attndiff {

/// Copies a contiguous view, wherever it lives, into a host tensor of the same type and shape. From the host the copy
/// is done at once; from a device it is enqueued on the stream and `to` must live until that has run.
void enqueue_download(const TensorView& from, Tensor& to, Stream stream);

/// Copies a host tensor into a contiguous view of the same type and shape, wherever it lives, in the same way.
void enqueue_upload(const Tensor& from, const TensorView& to, Stream stream);

}  // namespace attndiff
