#include "reference/product.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <vector>

#include "reference/contract/bfloat16.h"
#include "reference/contract/error.h"
#include "reference/formats.h"

namespace attndiff::reference {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMatrix = Eigen::Map<const RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>;
using Matrix = Eigen::Map<RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>;
using ConstVector = Eigen::Map<const Eigen::VectorXf>;
using Vector = Eigen::Map<Eigen::VectorXf>;

std::int64_t depth_of(const Weight& weight) {
  const Shape& shape = weight.values.shape();
  return shape[shape.rank() - 1];
}

/// e4m3_decode() of every code.
const std::array<float, 256>& e4m3_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> all{};
    for (std::size_t code = 0; code < all.size(); ++code) {
      all[code] = e4m3_decode(static_cast<std::uint8_t>(code));
    }
    return all;
  }();
  return values;
}

void dequantised_row(const Weight& weight, std::int64_t row, std::span<float> out) {
  const std::int64_t depth = static_cast<std::int64_t>(out.size());
  const auto* codes = reinterpret_cast<const std::uint8_t*>(weight.values.raw()) + row * depth;
  const std::int64_t blocks = weight.scales.shape()[1];
  const auto scales = weight.scales.as<std::uint8_t>().subspan(static_cast<std::size_t>(row / kE4m3Block * blocks));
  const auto& values = e4m3_values();
  for (std::int64_t begin = 0; begin < depth; begin += kE4m3Block) {
    const float scale = e8m0_decode(scales[static_cast<std::size_t>(begin / kE4m3Block)]);
    const auto block =
        out.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(kE4m3Block, depth - begin)));
    std::transform(codes + begin, codes + begin + block.size(), block.begin(),
                   [&](std::uint8_t code) { return values[code] * scale; });
  }
}

}  // namespace

void weight_rows(const Weight& weight, std::int64_t begin, std::int64_t count, std::span<float> out) {
  const std::int64_t depth = depth_of(weight);
  const auto first = static_cast<std::size_t>(begin * depth);
  const auto size = static_cast<std::size_t>(count * depth);
  switch (weight.values.dtype()) {
    case DType::f32: {
      const auto from = weight.values.as<float>().subspan(first, size);
      std::copy(from.begin(), from.end(), out.begin());
      return;
    }
    case DType::bf16: {
      const auto from = weight.values.as<Bf16>().subspan(first, size);
      std::transform(from.begin(), from.end(), out.begin(), [](Bf16 v) { return to_float(v); });
      return;
    }
    case DType::e4m3:
      for (std::int64_t row = 0; row < count; ++row) {
        dequantised_row(weight, begin + row,
                        out.subspan(static_cast<std::size_t>(row * depth), static_cast<std::size_t>(depth)));
      }
      return;
    case DType::i32:
    case DType::u8:
      break;
  }
  throw Error(ErrorKind::internal, std::string("a weight cannot be ") + name_of(weight.values.dtype()));
}

void product_of_panel(const ProductArgs& a) {
  thread_local std::vector<float> panel;
  panel.resize(static_cast<std::size_t>(a.rows * a.depth));
  weight_rows(a.weight, a.row_begin, a.rows, panel);
  const ConstMatrix w(panel.data(), a.rows, a.depth, Eigen::OuterStride<>(a.depth));
  if (a.tokens == 1) {
    Vector(a.y.data(), a.rows).noalias() = w * ConstVector(a.x.data(), a.depth);
    return;
  }
  const ConstMatrix x(a.x.data(), a.tokens, a.depth, Eigen::OuterStride<>(a.x_stride));
  Matrix(a.y.data(), a.tokens, a.rows, Eigen::OuterStride<>(a.y_stride)).noalias() = x * w.transpose();
}

void product(ThreadPool& pool, const ProductArgs& a) {
  // Few panels leave threads without work, so many tokens are cut as well: each cut converts the panel once more.
  constexpr std::int64_t kManyPanels = 32;
  constexpr std::int64_t kTokensOfFew = 1024;
  const std::int64_t panels = (a.rows + kPanelRows - 1) / kPanelRows;
  const std::int64_t height = panels < kManyPanels ? std::min(a.tokens, kTokensOfFew) : a.tokens;
  const std::int64_t blocks = height > 0 ? (a.tokens + height - 1) / height : 0;
  pool.parallel_for(panels * blocks, [&](std::int64_t i) {
    const std::int64_t row = i % panels * kPanelRows;
    const std::int64_t token = i / panels * height;
    product_of_panel({.x = a.x.subspan(static_cast<std::size_t>(token * a.x_stride)),
                      .x_stride = a.x_stride,
                      .tokens = std::min(height, a.tokens - token),
                      .depth = a.depth,
                      .weight = a.weight,
                      .row_begin = a.row_begin + row,
                      .rows = std::min(kPanelRows, a.rows - row),
                      .y = a.y.subspan(static_cast<std::size_t>(token * a.y_stride + row)),
                      .y_stride = a.y_stride});
  });
}

}  // namespace attndiff::reference
