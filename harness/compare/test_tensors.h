#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "reference/contract/families.h"
#include "reference/contract/stage.h"
#include "reference/contract/tensor.h"
#include "reference/quantize.h"

namespace attndiff::test {

/// Uniform values in (-2, 2), the same on every standard library.
class Values {
 public:
  explicit Values(std::uint32_t seed) : engine_(seed) {}

  float next() { return static_cast<float>(engine_()) * 0x1p-30F - 2.0F; }
  /// True once in `n` calls on average.
  bool once_in(std::uint32_t n) { return engine_() % n == 0; }
  std::size_t below(std::size_t n) { return engine_() % n; }

 private:
  std::mt19937 engine_;
};

inline const ModelFamily& family() { return family_named("deepseek-v41"); }
inline const StageInfo& stage(std::string_view name) { return *family().find(name); }

inline Tensor bf16_tensor(const Shape& shape, std::span<const float> values) {
  Tensor t(DType::f32, shape);
  std::copy(values.begin(), values.end(), t.as<float>().begin());
  return to_bf16(t);
}
inline Tensor bf16_tensor(const Shape& shape, std::initializer_list<float> values) {
  return bf16_tensor(shape, std::span(values.begin(), values.size()));
}

/// float32 values that are exact in bfloat16.
inline std::vector<float> rounded_values(std::int64_t n, std::uint32_t seed) {
  Values values(seed);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& v : out) {
    v = round_bf16(values.next());
  }
  return out;
}

inline void quantise(Rounding grid, std::span<float> row) {
  switch (grid) {
    case Rounding::fp8:
      return reference::fp8_round_trip(row);
    case Rounding::fp4_e8m0:
      return reference::fp4_e8m0_round_trip(row);
    default:
      return reference::fp4_e4m3_round_trip(row);
  }
}

/// A value of the stage: random, of the stage's element type, and on its grid where it has one. Of a mixed tensor the
/// first half of the rows is on the fp8 grid, the second on the fp4_e4m3 grid.
inline Tensor stage_value(const StageInfo& info, std::int64_t rows, std::int64_t width, std::uint32_t seed) {
  std::vector<float> values = rounded_values(rows * width, seed);
  const auto row = [&](std::int64_t r) { return std::span(values).subspan(r * width, width); };
  for (std::int64_t r = 0; r < rows; ++r) {
    if (info.rounding == Rounding::mixed) {
      quantise(r < rows / 2 ? Rounding::fp8 : Rounding::fp4_e4m3, row(r));
    } else if (info.kind == StageKind::code || info.rounding == Rounding::fp8) {
      quantise(info.rounding, row(r));
    }
  }
  Tensor t(info.dtype, {rows, width});
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (info.dtype) {
      case DType::bf16:
        t.as<Bf16>()[i] = to_bf16(values[i]);
        break;
      case DType::f32:
        t.as<float>()[i] = values[i];
        break;
      case DType::i32:
        t.as<std::int32_t>()[i] = static_cast<std::int32_t>(values[i] * 100);
        break;
      default:
        t.as<std::uint8_t>()[i] = values[i] > 0 ? 1 : 0;
        break;
    }
  }
  return t;
}

/// Overwrites one element with the value (of the tensor's type) nearest to `v`.
inline void set(Tensor& t, std::int64_t flat, float v) {
  const auto i = static_cast<std::size_t>(flat);
  switch (t.dtype()) {
    case DType::bf16:
      t.as<Bf16>()[i] = to_bf16(v);
      return;
    case DType::f32:
      t.as<float>()[i] = v;
      return;
    case DType::i32:
      t.as<std::int32_t>()[i] = static_cast<std::int32_t>(v);
      return;
    default:
      t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(v);
      return;
  }
}
inline float get(const Tensor& t, std::int64_t flat) { return to_f32(t).as<float>()[static_cast<std::size_t>(flat)]; }

/// The next bfloat16 away from zero.
inline float one_unit_up(float v) {
  Bf16 b = to_bf16(v);
  ++b.bits;
  return to_float(b);
}

}  // namespace attndiff::test
