#include "kernels/launch.cuh"
#include "kernels/math.cuh"
#include "kernels/mutants/products.h"

namespace attndiff::kernels::mutants {
namespace {

constexpr int kThreads = 128;

/// sum_k x[k] * w[k] over [begin, end) in one warp, in every lane.
__device__ float warp_dot(const Bf16* x, const Bf16* w, std::int64_t begin, std::int64_t end) {
  float sum = 0;
  for (std::int64_t k = begin + static_cast<int>(threadIdx.x) % kWarp; k < end; k += kWarp) {
    sum = fmaf(widen(x[k]), widen(w[k]), sum);
  }
  return warp_sum(sum);
}

/// The output that the thread's warp computes.
__device__ std::int64_t warp_output() {
  return static_cast<std::int64_t>(blockIdx.x) * (kThreads / kWarp) + static_cast<int>(threadIdx.x) / kWarp;
}

__global__ void __launch_bounds__(kThreads) matvec_variant(MatvecArgs a, MatvecVariant v) {
  const std::int64_t output = warp_output();
  if (output >= a.outputs) {
    return;
  }
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.y) * a.outputs + output;
  float sum = 0;
  for (int split = 0; split < v.splits; ++split) {
    const float part = warp_dot(a.x + blockIdx.y * a.depth, a.w + at * a.depth, a.depth * split / v.splits,
                                a.depth * (split + 1) / v.splits);
    sum = v.bf16_partials ? round_to_bf16(sum + round_to_bf16(part)) : sum + part;
  }
  if (threadIdx.x % kWarp != 0) {
    return;
  }
  if (a.y_f32 != nullptr) {
    a.y_f32[at] = sum;
  } else {
    a.y[at] = narrow(sum);
  }
}

__global__ void __launch_bounds__(kThreads) scaled_product(ScaledProductArgs a) {
  const std::int64_t output = warp_output();
  if (output >= a.tokens * a.outputs) {
    return;
  }
  const float sum = warp_dot(a.x + output / a.outputs * a.depth, a.w + output % a.outputs * a.depth, 0, a.depth);
  if (threadIdx.x % kWarp == 0) {
    a.y[output] = narrow(sum * a.scale);
  }
}

}  // namespace

void launch_matvec_variant(const MatvecArgs& args, const MatvecVariant& variant, cudaStream_t stream) {
  const dim3 grid(blocks_for(args.outputs, kThreads / kWarp), static_cast<unsigned>(args.batch));
  launch("matvec_variant", matvec_variant, grid, kThreads, 0, stream, args, variant);
}

void launch_scaled_product(const ScaledProductArgs& args, cudaStream_t stream) {
  if (args.tokens * args.outputs > 0) {
    launch("scaled_product", scaled_product, blocks_for(args.tokens * args.outputs, kThreads / kWarp), kThreads, 0,
           stream, args);
  }
}

}  // namespace attndiff::kernels::mutants
