#include "kernels/launch.cuh"
#include "kernels/math.cuh"
#include "kernels/matvec.h"

namespace attndiff::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kPerLane = 8;  // bf16 values of one 16-byte load

__device__ __forceinline__ float dot8(uint4 x, uint4 w, float sum) {
  const unsigned xs[4] = {x.x, x.y, x.z, x.w};
  const unsigned ws[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum = fmaf(__uint_as_float(xs[i] << 16U), __uint_as_float(ws[i] << 16U), sum);
    sum = fmaf(__uint_as_float(xs[i] & 0xffff0000U), __uint_as_float(ws[i] & 0xffff0000U), sum);
  }
  return sum;
}

/// One warp an output.
__global__ void __launch_bounds__(kThreads) matvec(MatvecArgs a) {
  const std::int64_t output =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kWarp) + static_cast<int>(threadIdx.x) / kWarp;
  if (output >= a.outputs) {
    return;
  }
  const std::int64_t batch = blockIdx.y;
  const auto* x = reinterpret_cast<const uint4*>(a.x + batch * a.depth);
  const auto* w = reinterpret_cast<const uint4*>(a.w + (batch * a.outputs + output) * a.depth);
  float sum = 0;
#pragma unroll 4
  for (std::int64_t i = static_cast<int>(threadIdx.x) % kWarp; i < a.depth / kPerLane; i += kWarp) {
    sum = dot8(x[i], w[i], sum);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) {
    const std::int64_t at = batch * a.outputs + output;
    if (a.y_f32 != nullptr) {
      a.y_f32[at] = sum;
    } else {
      a.y[at] = narrow(sum);
    }
  }
}

}  // namespace

bool matvec_supports(std::int64_t depth) noexcept { return depth % kPerLane == 0; }

void launch_matvec(const MatvecArgs& args, cudaStream_t stream) {
  const dim3 grid(blocks_for(args.outputs, kThreads / kWarp), static_cast<unsigned>(args.batch));
  launch("matvec", matvec, grid, kThreads, 0, stream, args);
}

}  // namespace attndiff::kernels
