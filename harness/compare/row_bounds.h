#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "harness/compare/tolerance.h"
#include "reference/contract/stage.h"

namespace attndiff {

/// One row of both sides, as doubles.
struct RowPair {
  std::span<const double> reference;
  std::span<const double> candidate;
  double reference_rms = 0;  ///< over the finite elements
};

/// Writes the |d| that the tolerance allows each differing element of a row (0 for equal ones), and returns how many of
/// the row's differences are not independent: in a quantiser block whose scale differs between the sides, all but one.
std::int64_t row_bounds(const StageInfo& stage, const StageTolerance& tolerance, const RowPair& row,
                        std::span<double> allowed);

/// NaN equals NaN, -0 equals +0, an infinity only itself.
[[nodiscard]] inline bool same_value(double a, double b) noexcept { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace attndiff
