#include "harness/compare/grid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reference/contract/error.h"
#include "reference/formats.h"
#include "reference/quantize.h"

namespace attndiff {
namespace {

using reference::e2m1_round;
using reference::e4m3_decode;
using reference::e4m3_encode;

bool is_e4m3(double v) noexcept {
  const auto f = static_cast<float>(v);
  return static_cast<double>(f) == v && e4m3_decode(e4m3_encode(f)) == f;
}

bool is_e2m1(double v) noexcept {
  const auto f = static_cast<float>(v);
  return static_cast<double>(f) == v && e2m1_round(f) == f;
}

bool fits(Rounding grid, double scale, std::span<const double> block) noexcept {
  return std::all_of(block.begin(), block.end(), [&](double v) {
    const double code = v / scale;
    return grid == Rounding::fp8 ? is_e4m3(code) : is_e2m1(code);
  });
}

/// The scale that the quantiser gives an all-zero block: its smallest.
double floor_scale(Rounding grid) noexcept {
  constexpr std::array<float, 1> kZero{};
  switch (grid) {
    case Rounding::fp8:
      return reference::fp8_scale(kZero);
    case Rounding::fp4_e8m0:
      return reference::fp4_e8m0_scale(kZero);
    default:
      return reference::fp4_e4m3_scale(kZero);
  }
}

/// Scales are powers of two, and a block's largest code lies in (max/2, max] before rounding.
BlockScale power_of_two_scale(Rounding grid, double amax, std::span<const double> block) noexcept {
  const double largest = grid == Rounding::fp8 ? reference::kE4m3Max : reference::kE2m1Max;
  const double floor = floor_scale(grid);
  const double coarse = std::max(std::ldexp(1.0, std::ilogb(amax / (largest / 2))), floor);
  for (const double scale : {coarse, coarse / 2}) {
    if (scale >= floor && amax <= largest * scale && fits(grid, scale, block)) {
      return {scale, true};
    }
  }
  return {coarse, false};
}

/// Scales are e4m3 values near amax / 6: the largest code is 6, or 4 where the scale's subnormal rounding is coarse, or
/// anything at the smallest scale.
BlockScale e4m3_scale(double amax, std::span<const double> block) noexcept {
  const double floor = floor_scale(Rounding::fp4_e4m3);
  for (const double scale : {amax / 6, amax / 4, floor}) {
    if (scale >= floor && is_e4m3(scale) && fits(Rounding::fp4_e4m3, scale, block)) {
      return {scale, true};
    }
  }
  return {std::max(amax / 6, floor), false};
}

}  // namespace

bool is_grid(Rounding rounding) noexcept {
  return rounding == Rounding::fp8 || rounding == Rounding::fp4_e8m0 || rounding == Rounding::fp4_e4m3;
}

std::size_t block_size(Rounding grid) noexcept {
  switch (grid) {
    case Rounding::fp8:
      return reference::kFp8Block;
    case Rounding::fp4_e8m0:
      return reference::kFp4E8m0Block;
    default:
      return reference::kFp4E4m3Block;
  }
}

BlockScale block_scale(Rounding grid, std::span<const double> block) {
  if (!is_grid(grid)) {
    throw Error(ErrorKind::internal, std::string("no quantiser grid: ") + name_of(grid));
  }
  double amax = 0;
  bool finite = true;
  for (const double v : block) {
    if (std::isfinite(v)) {
      amax = std::max(amax, std::fabs(v));
    } else {
      finite = false;
    }
  }
  if (amax == 0) {
    return {floor_scale(grid), finite};
  }
  return grid == Rounding::fp4_e4m3 ? e4m3_scale(amax, block) : power_of_two_scale(grid, amax, block);
}

double grid_step(Rounding grid, double scale, double magnitude) noexcept {
  const double code = magnitude / scale;
  if (grid != Rounding::fp8) {
    constexpr double kHalves = 2;  // codes up to 2 are 0.5 apart, up to 4 are 1 apart, then 2
    constexpr double kOnes = 4;
    return scale * (code <= kHalves ? 0.5 : code <= kOnes ? 1.0 : 2.0);
  }
  constexpr int kFractionBits = 3;
  constexpr int kSubnormalStep = -9;
  if (code <= std::ldexp(1.0, kSubnormalStep + kFractionBits)) {
    return std::ldexp(scale, kSubnormalStep);
  }
  const int exponent = std::ilogb(code);
  const bool power_of_two = std::ldexp(1.0, exponent) == code;  // its lower neighbour lies in the finer binade
  return std::ldexp(scale, exponent - kFractionBits - (power_of_two ? 1 : 0));
}

Rounding row_grid(Rounding rounding, std::span<const double> row) {
  if (rounding != Rounding::mixed) {
    return rounding;
  }
  const std::size_t block = block_size(Rounding::fp4_e4m3);
  for (std::size_t begin = 0; begin < row.size(); begin += block) {
    if (!block_scale(Rounding::fp4_e4m3, row.subspan(begin, std::min(block, row.size() - begin))).on_grid) {
      return Rounding::fp8;
    }
  }
  return Rounding::fp4_e4m3;
}

}  // namespace attndiff
