#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

enum class RotaryDirection : std::uint8_t { forward, inverse };

/// Turns the last `rope_dim` entries of every row: adjacent pairs, one complex product in float32, each part rounded to
/// bf16. Row `i` stands at position `*first + (i / rows_per_position) * stride`. `to` may be `from`; elsewhere the
/// entries that do not turn are copied.
struct RotaryArgs {
  const Bf16* from = nullptr;           ///< [rows, width]
  Bf16* to = nullptr;                   ///< [rows, width]
  const float* cos = nullptr;           ///< [positions, rope_dim / 2]
  const float* sin = nullptr;           ///< [positions, rope_dim / 2]
  const std::int64_t* first = nullptr;  ///< in device memory
  std::int64_t stride = 1;
  std::int64_t rows = 0;
  std::int64_t rows_per_position = 1;
  std::int64_t width = 0;
  std::int64_t rope_dim = 0;
  RotaryDirection direction = RotaryDirection::forward;
};

void launch_rotary(const RotaryArgs& args, cudaStream_t stream);

}  // namespace attndiff::kernels
