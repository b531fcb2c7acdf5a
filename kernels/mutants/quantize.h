#pragma once

#include <cuda_runtime_api.h>

#include "kernels/quantize.h"

namespace attndiff::kernels::mutants {

/// The round trips with parts that can be wrong. The defaults are right.
struct QuantizeVariant {
  bool scale_by_floor = false;  ///< a power-of-two scale is rounded down
  bool ties_away = false;       ///< halfway values of e2m1 leave zero instead of going to the even code
  float e4m3_limit = 448;       ///< values of the window rows are clamped to +- this
  bool reciprocal = false;      ///< multiplies by 1 / scale instead of dividing
};

void launch_quantize_variant(const QuantizeArgs& args, const QuantizeVariant& variant, cudaStream_t stream);

}  // namespace attndiff::kernels::mutants
