#include "harness/compare/row_bounds.h"

#include <algorithm>
#include <cmath>

#include "harness/compare/grid.h"
#include "reference/contract/bfloat16.h"

namespace attndiff {
namespace {

/// The scale whose steps two quantised blocks are held to. A maximum that crosses a boundary moves the scale to its
/// neighbour, at most a factor of two; a candidate's scale beyond that earns no wider tolerance.
double judged_scale(const BlockScale& reference, const BlockScale& candidate) noexcept {
  if (!candidate.on_grid) {
    return reference.scale;
  }
  return std::max(reference.scale, std::min(candidate.scale, 2 * reference.scale));
}

std::int64_t differences(std::span<const double> a, std::span<const double> b) noexcept {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    n += same_value(a[i], b[i]) ? 0 : 1;
  }
  return n;
}

std::int64_t quantised_bounds(Rounding grid, const StageTolerance& t, const RowPair& row, std::span<double> allowed) {
  std::int64_t dependent = 0;
  const std::size_t width = block_size(grid);
  for (std::size_t begin = 0; begin < allowed.size(); begin += width) {
    const std::size_t n = std::min(width, allowed.size() - begin);
    const auto reference = row.reference.subspan(begin, n);
    const auto candidate = row.candidate.subspan(begin, n);
    const std::int64_t differing = differences(reference, candidate);
    if (differing == 0) {
      continue;
    }
    const BlockScale ours = block_scale(grid, reference);
    const BlockScale theirs = block_scale(grid, candidate);
    const double scale = judged_scale(ours, theirs);
    for (std::size_t i = 0; i < n; ++i) {
      if (reference[i] == candidate[i]) {
        continue;
      }
      const double larger = std::max(std::fabs(reference[i]), std::fabs(candidate[i]));
      allowed[begin + i] =
          t.steps * (std::isfinite(larger) ? grid_step(grid, scale, larger) : 0) + t.rms_fraction * row.reference_rms;
    }
    if (ours.on_grid && theirs.on_grid && ours.scale != theirs.scale) {
      dependent += differing - 1;
    }
  }
  return dependent;
}

}  // namespace

std::int64_t row_bounds(const StageInfo& stage, const StageTolerance& tolerance, const RowPair& row,
                        std::span<double> allowed) {
  const StageTolerance& t = tolerance;
  const double of_row = t.rms_fraction * row.reference_rms;
  const auto each = [&](auto bound) {
    std::transform(row.reference.begin(), row.reference.end(), row.candidate.begin(), allowed.begin(),
                   [&](double r, double c) { return std::isfinite(r) && r != c ? bound(r) : 0.0; });
  };
  switch (t.kind) {
    case ToleranceKind::exact:
      std::fill(allowed.begin(), allowed.end(), 0.0);
      return 0;
    case ToleranceKind::bf16:
      each([&](double r) { return t.units * bf16_unit(r) + of_row; });
      return 0;
    case ToleranceKind::f32:
      each([&](double r) { return t.absolute + t.relative * std::fabs(r) + of_row; });
      return 0;
    case ToleranceKind::quantised:
      std::fill(allowed.begin(), allowed.end(), 0.0);
      return quantised_bounds(row_grid(stage.rounding, row.reference), t, row, allowed);
  }
  return 0;
}

}  // namespace attndiff
