#pragma once

#include <memory>

#include "harness/backend.h"
#include "harness/run/listener.h"

namespace attndiff {

/// The candidate's sequence, each of whose calls and offered stages the listener is told of. `mode` is the run's.
[[nodiscard]] std::unique_ptr<Sequence> start_announced(Backend& candidate, const FixtureReader& fixture,
                                                        const char* mode, ReplayListener& listener);

}  // namespace attndiff
