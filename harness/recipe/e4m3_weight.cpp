#include "harness/recipe/e4m3_weight.h"

#include <algorithm>
#include <cmath>

#include "reference/formats.h"

namespace attndiff {
namespace {

constexpr float kSmallestAmax = 1e-4F;
constexpr int kE8m0Bias = 127;

struct Block {
  std::int64_t first_row, last_row, first_column, last_column;
};

float block_scale(std::span<const float> values, std::int64_t columns, const Block& block) {
  float amax = kSmallestAmax;
  for (std::int64_t row = block.first_row; row < block.last_row; ++row) {
    for (std::int64_t column = block.first_column; column < block.last_column; ++column) {
      amax = std::max(amax, std::fabs(values[static_cast<std::size_t>(row * columns + column)]));
    }
  }
  return reference::pow2ceil(amax / reference::kE4m3Max);
}

}  // namespace

void vary_blocks(Tensor& values) {
  const std::int64_t columns = values.shape()[1];
  const auto entries = values.as<float>();
  for (std::int64_t i = 0; i < values.count(); ++i) {
    const std::int64_t phase = (i / columns / kE4m3Block + 2 * (i % columns / kE4m3Block)) % 3;
    float& entry = entries[static_cast<std::size_t>(i)];
    entry = std::ldexp(entry, 1 - static_cast<int>(phase));
  }
}

Weight quantise_e4m3(const Tensor& values) {
  const std::int64_t rows = values.shape()[0];
  const std::int64_t columns = values.shape()[1];
  const std::int64_t block_rows = (rows + kE4m3Block - 1) / kE4m3Block;
  const std::int64_t block_columns = (columns + kE4m3Block - 1) / kE4m3Block;
  Weight weight{.values = Tensor(DType::e4m3, values.shape()),
                .scales = Tensor(DType::u8, {block_rows, block_columns})};
  const auto from = values.as<float>();
  const auto scales = weight.scales.as<std::uint8_t>();
  for (std::int64_t i = 0; i < block_rows * block_columns; ++i) {
    const std::int64_t top = i / block_columns * kE4m3Block;
    const std::int64_t left = i % block_columns * kE4m3Block;
    const Block block{top, std::min(top + kE4m3Block, rows), left, std::min(left + kE4m3Block, columns)};
    const float scale = block_scale(from, columns, block);
    scales[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(std::ilogb(scale) + kE8m0Bias);
    for (std::int64_t row = block.first_row; row < block.last_row; ++row) {
      for (std::int64_t column = block.first_column; column < block.last_column; ++column) {
        const auto at = static_cast<std::size_t>(row * columns + column);
        weight.values.raw()[at] = std::byte{reference::e4m3_encode(from[at] / scale)};
      }
    }
  }
  return weight;
}

}  // namespace attndiff
