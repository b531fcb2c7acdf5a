#pragma once

#include <functional>
#include <span>

#include "harness/run/coverage.h"

namespace attndiff {

/// Counters of what values are, not of what calls do: denormals, values near overflow, shifted scores and rows of
/// inputs. Each takes one call's tensors on the host.

/// `denormal_values` and `near_overflow_values` over the real stages that exist, `raised_lse` and `lowered_lse`. `pool`
/// may be null.
void count_values(const CoverageCounter::Lookup& find, reference::ThreadPool* pool, Coverage& coverage);

/// Whether count_values() looks at a stage.
[[nodiscard]] bool counts_values_of(int stage) noexcept;

/// `raised_scores` or `lowered_scores` of one query: its visible index scores.
void count_shift(std::span<const float> scores, Coverage& coverage);

/// `constant_input_rows`, `repeated_input_rows` and `outlier_input_rows` of x: bf16 [tokens, dim].
void count_input_rows(const Tensor& x, Coverage& coverage);

}  // namespace attndiff
