#include "kernels/launch.cuh"
#include "kernels/math.cuh"
#include "kernels/rotary.h"

namespace attndiff::kernels {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) rotary(RotaryArgs a) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t begin = row * a.width;
  const std::int64_t still = a.width - a.rope_dim;
  if (a.to != a.from) {
    for (std::int64_t d = threadIdx.x; d < still; d += kThreads) {
      a.to[begin + d] = a.from[begin + d];
    }
  }
  const std::int64_t pairs = a.rope_dim / 2;
  const std::int64_t phase = (*a.first + row / a.rows_per_position * a.stride) * pairs;
  const float turn = a.direction == RotaryDirection::forward ? 1.0F : -1.0F;
  for (std::int64_t k = threadIdx.x; k < pairs; k += kThreads) {
    const std::int64_t at = begin + still + 2 * k;
    const float re = widen(a.from[at]);
    const float im = widen(a.from[at + 1]);
    const float c = a.cos[phase + k];
    const float s = turn * a.sin[phase + k];
    a.to[at] = narrow(__fsub_rn(__fmul_rn(re, c), __fmul_rn(im, s)));
    a.to[at + 1] = narrow(__fadd_rn(__fmul_rn(re, s), __fmul_rn(im, c)));
  }
}

}  // namespace

void launch_rotary(const RotaryArgs& args, cudaStream_t stream) {
  if (args.rows > 0) {
    launch("rotary", rotary, static_cast<unsigned>(args.rows), kThreads, 0, stream, args);
  }
}

}  // namespace attndiff::kernels
