#include "kernels/launch.cuh"
#include "kernels/math.cuh"
#include "kernels/rms_norm.h"

namespace attndiff::kernels {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float value_of(Bf16 v) { return widen(v); }
__device__ __forceinline__ float value_of(float v) { return v; }

template <typename T>
__global__ void __launch_bounds__(kThreads)
    rms_norm(const T* x, const float* w, Bf16* y, std::int64_t width, float eps) {
  __shared__ float scratch[kThreads / kWarp];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * width;
  float squares = 0;
  for (std::int64_t d = threadIdx.x; d < width; d += kThreads) {
    const float v = value_of(x[row + d]);
    squares = fmaf(v, v, squares);
  }
  const float mean = block_sum(squares, scratch) / static_cast<float>(width);
  // Root and quotient are correctly rounded; the hardware's rsqrt is not.
  const float inverse_rms = 1.0F / sqrtf(mean + eps);
  for (std::int64_t d = threadIdx.x; d < width; d += kThreads) {
    y[row + d] = narrow(w[d] * (value_of(x[row + d]) * inverse_rms));
  }
}

template <typename Args, typename T>
void run(const Args& a, const T* x, cudaStream_t stream) {
  if (a.rows > 0) {
    launch("rms_norm", rms_norm<T>, static_cast<unsigned>(a.rows), kThreads, 0, stream, x, a.w, a.y, a.width, a.eps);
  }
}

}  // namespace

void launch_rms_norm(const RmsNormArgs& args, cudaStream_t stream) { run(args, args.x, stream); }
void launch_rms_norm(const RmsNormF32Args& args, cudaStream_t stream) { run(args, args.x, stream); }

}  // namespace attndiff::kernels
