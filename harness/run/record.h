#pragma once

#include <string>

#include "harness/backend.h"

namespace attndiff {

/// Runs a backend over a fixture and writes another fixture: the same inputs, and every stage the backend publishes as
/// `expected`. Memory holds one layer's call at a time. Throws Error; then nothing is left under `to`.
void record(const std::string& from, const std::string& to, Backend& backend);

}  // namespace attndiff
