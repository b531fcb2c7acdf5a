#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

/// The round trips of reference/quantize.h.
enum class RoundTrip : std::uint8_t { fp8, fp4_e8m0, fp4_e4m3 };

/// Quantises and dequantises `count` values, a whole number of blocks; `to` may be `from`.
struct QuantizeArgs {
  const Bf16* from = nullptr;
  Bf16* to = nullptr;
  std::int64_t count = 0;
  RoundTrip kind = RoundTrip::fp8;
};

void launch_quantize(const QuantizeArgs& args, cudaStream_t stream);

}  // namespace attndiff::kernels
