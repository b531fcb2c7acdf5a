#pragma once

#include "reference/contract/observer.h"
#include "reference/contract/tensor.h"

namespace attndiff {

/// A host tensor for a contiguous view's elements, wherever they live. From the host they are copied at once; from a
/// device the copy is enqueued on the stream: until it has run, the tensor may be moved but must live.
[[nodiscard]] Tensor enqueue_download(const TensorView& from, Stream stream);

/// Copies a host tensor into a contiguous view of the same type and shape, wherever it lives, in the same way.
void enqueue_upload(const Tensor& from, const TensorView& to, Stream stream);

}  // namespace attndiff
