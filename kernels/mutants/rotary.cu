#include "kernels/launch.cuh"
#include "kernels/math.cuh"
#include "kernels/mutants/rotary.h"

namespace attndiff::kernels::mutants {
namespace {

constexpr int kThreads = 128;

__device__ std::int64_t position_of(const RotaryArgs& a, const RotaryVariant& v, std::int64_t row) {
  const std::int64_t step = row / a.rows_per_position;
  if (v.by_group_index && a.stride > 1) {
    return *a.first / a.stride + step;
  }
  const std::int64_t position = *a.first + step * a.stride;
  return v.bf16_position ? static_cast<std::int64_t>(round_to_bf16(static_cast<float>(position))) : position;
}

__global__ void __launch_bounds__(kThreads) rotary_variant(RotaryArgs a, RotaryVariant v) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t begin = row * a.width;
  const std::int64_t still = a.width - a.rope_dim;
  if (a.to != a.from) {
    for (std::int64_t d = threadIdx.x; d < still; d += kThreads) {
      a.to[begin + d] = a.from[begin + d];
    }
  }
  const std::int64_t pairs = a.rope_dim / 2;
  const std::int64_t phase = position_of(a, v, row) * pairs;
  const float turn = a.direction == RotaryDirection::forward ? 1.0F : -1.0F;
  for (std::int64_t k = threadIdx.x; k < pairs; k += kThreads) {
    const std::int64_t re_at = begin + still + (v.half_split ? k : 2 * k);
    const std::int64_t im_at = re_at + (v.half_split ? pairs : 1);
    const float re = widen(a.from[re_at]);
    const float im = widen(a.from[im_at]);
    const float c = a.cos[phase + k];
    const float s = turn * a.sin[phase + k];
    a.to[re_at] = narrow(__fsub_rn(__fmul_rn(re, c), __fmul_rn(im, s)));
    a.to[im_at] = narrow(__fadd_rn(__fmul_rn(re, s), __fmul_rn(im, c)));
  }
}

}  // namespace

void launch_rotary_variant(const RotaryArgs& args, const RotaryVariant& variant, cudaStream_t stream) {
  if (args.rows > 0) {
    launch("rotary_variant", rotary_variant, static_cast<unsigned>(args.rows), kThreads, 0, stream, args, variant);
  }
}

}  // namespace attndiff::kernels::mutants
