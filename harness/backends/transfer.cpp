#include "harness/backends/transfer.h"

#include <cstring>

#include "reference/contract/error.h"

#ifdef ATTNDIFF_HAVE_CUDA
#include "device/transfer.h"
#endif

namespace attndiff {
namespace {

#ifndef ATTNDIFF_HAVE_CUDA
[[noreturn]] void refuse_place() {
  throw Error(ErrorKind::internal, "this build has no CUDA and cannot reach device memory");
}
#endif

}  // namespace

Tensor enqueue_download(const TensorView& from, Stream stream) {
  if (from.place.kind == Place::Kind::host) {
    return copy_of(from);
  }
#ifdef ATTNDIFF_HAVE_CUDA
  Tensor to = Tensor::unwritten(from.dtype, from.shape);
  device::enqueue_copy(to.raw(), from.data, to.bytes(), stream);
  return to;
#else
  static_cast<void>(stream);
  refuse_place();
#endif
}

void enqueue_upload(const Tensor& from, const TensorView& to, Stream stream) {
  if (to.place.kind == Place::Kind::host) {
    if (from.bytes() > 0) {
      std::memcpy(to.data, from.raw(), from.bytes());
    }
    return;
  }
#ifdef ATTNDIFF_HAVE_CUDA
  device::enqueue_copy(to.data, from.raw(), from.bytes(), stream);
#else
  static_cast<void>(stream);
  refuse_place();
#endif
}

}  // namespace attndiff
