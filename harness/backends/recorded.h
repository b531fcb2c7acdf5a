#pragma once

#include <memory>

#include "harness/backend.h"

namespace attndiff {

/// The tensors stored in the fixture under `expected`, offered as if they had just been computed.
[[nodiscard]] std::unique_ptr<Backend> make_recorded_backend();

}  // namespace attndiff
