#include <algorithm>
#include <cctype>
#include <utility>

#include "harness/compare/detail_parts.h"

namespace attndiff {
namespace {

constexpr char kEqual = '.';
constexpr char kNotFinite = '!';

std::string name_at(std::span<const std::string> names, std::size_t axis) {
  return axis < names.size() ? names[axis] : std::string();
}

/// The larger error of two cells, capital where either is.
char worse(char a, char b) noexcept {
  if (a == kNotFinite || b == kNotFinite) {
    return kNotFinite;
  }
  if (a == kEqual || b == kEqual) {
    return a == kEqual ? b : a;
  }
  const auto low = [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); };
  const char letter = std::max(low(a), low(b));
  const bool beyond = low(a) != a || low(b) != b;
  return beyond ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
}

}  // namespace

HeatMapBuilder::HeatMapBuilder(const Shape& shape, std::size_t row_axis, std::size_t column_axis,
                               std::span<const std::string> names)
    : row_(axis_of(shape, row_axis)), column_(axis_of(shape, column_axis)) {
  map_ = {.row_axis = name_at(names, row_axis),
          .column_axis = name_at(names, column_axis),
          .row_extent = row_.extent,
          .column_extent = column_.extent,
          .row_tile = row_.tile,
          .column_tile = column_.tile,
          .rows = std::vector<std::string>(row_.cells(), std::string(column_.cells(), kEqual))};
}

HeatMapBuilder::Axis HeatMapBuilder::axis_of(const Shape& shape, std::size_t axis) {
  if (axis >= shape.rank()) {
    return {};
  }
  const std::int64_t extent = shape[axis];
  // A power of two, so that tiles line up with those that kernels work in.
  std::int64_t tile = 1;
  while ((extent + tile - 1) / tile > HeatMap::kMostCells) {
    tile *= 2;
  }
  return {.extent = extent, .stride = shape.strides()[axis], .tile = tile};
}

void HeatMapBuilder::add(std::int64_t flat, char letter, bool beyond) {
  char& cell = map_.rows[row_.cell_of(flat)][column_.cell_of(flat)];
  cell = worse(cell, beyond ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter);
}

HeatMap HeatMapBuilder::take() && { return std::move(map_); }

std::vector<HeatMapBuilder> heat_maps(const Shape& shape, std::span<const std::string> names) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1) {
      axes.push_back(axis);
    }
  }
  std::vector<HeatMapBuilder> maps;
  const auto add = [&](std::size_t row, std::size_t column) { maps.emplace_back(shape, row, column, names); };
  if (axes.size() < 2) {
    add(shape.rank(), axes.empty() ? 0 : axes.front());
    return maps;
  }
  add(axes[0], axes[1]);
  if (axes.size() > 2) {
    add(axes.front(), axes.back());
    add(axes[axes.size() - 2], axes.back());
  }
  return maps;
}

}  // namespace attndiff
