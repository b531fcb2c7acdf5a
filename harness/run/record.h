#pragma once

#include <string>

#include "harness/backend.h"
#include "harness/fixture/writer.h"

namespace attndiff {

/// Runs a backend over a fixture and writes another fixture: the same inputs, and every stage the backend publishes as
/// `expected`. Tensors given by a rule are written as `rules` says. Memory holds one layer's call at a time. Throws
/// Error; then nothing is left under `to`.
void record(const std::string& from, const std::string& to, Backend& backend, RuleForm rules = RuleForm::rule);

}  // namespace attndiff
