#pragma once

#include <cstdint>
#include <span>

#include "reference/contract/stage.h"

namespace attndiff {

/// The grids that dequantised values lie on (specification, "Quantisers"): what the comparator must know about them to
/// count in whole quantiser steps. Values are given as doubles of what a quantised stage stores.

/// True for fp8, fp4_e8m0 and fp4_e4m3 (a `mixed` tensor has one of these per row).
[[nodiscard]] bool is_grid(Rounding rounding) noexcept;

/// Values that share one scale: 32, 32, 16.
[[nodiscard]] std::size_t block_size(Rounding grid) noexcept;

/// A block's scale, read back from its dequantised values.
struct BlockScale {
  double scale = 0;
  bool on_grid = false;  ///< every value of the block is a code times this scale
};

/// Finds the scale of one block. Two power-of-two scales can lie behind the same largest magnitude (448 s and
/// 224 (2 s), 6 s and 3 (2 s)); the coarser one is given where every value lies on its grid. An all-zero block has the
/// quantiser's floor. Where no scale fits, `on_grid` is false and the scale is the one the largest magnitude suggests.
[[nodiscard]] BlockScale block_scale(Rounding grid, std::span<const double> block);

/// Distance from `magnitude` (>= 0) down to the next value of the grid with that scale.
[[nodiscard]] double grid_step(Rounding grid, double scale, double magnitude) noexcept;

/// The grid of one row of a tensor: the stage's rounding or, where that is `mixed`, fp4_e4m3 when the row lies wholly
/// on such a grid and fp8 (the finer one) when it does not.
[[nodiscard]] Rounding row_grid(Rounding rounding, std::span<const double> row);

}  // namespace attndiff
