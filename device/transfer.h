#pragma once

#include <cstddef>

#include "reference/contract/observer.h"

namespace attndiff::device {

/// Enqueues a copy of `bytes` between host and device memory, in either direction, on a stage's stream. Throws
/// Error(internal) with what the driver says.
void enqueue_copy(void* to, const void* from, std::size_t bytes, Stream stream);

}  // namespace attndiff::device
