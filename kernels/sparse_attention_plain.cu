#include "kernels/launch.cuh"
#include "kernels/sparse_attention_forms.cuh"

namespace attndiff::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;

/// q . row in one warp, in every lane.
__device__ __forceinline__ float warp_dot(const Bf16* q, const Bf16* row, std::int64_t width) {
  float sum = 0;
  for (std::int64_t d = static_cast<int>(threadIdx.x) % kWarp; d < width; d += kWarp) {
    sum = fmaf(widen(q[d]), widen(row[d]), sum);
  }
  return warp_sum(sum);
}

/// One query and head a block. Absent entries keep the weight 0 and add nothing to any sum, so trailing ones do not
/// change a bit.
__global__ void __launch_bounds__(kThreads) plain(SparseAttentionArgs a) {
  extern __shared__ float weights[];
  __shared__ float scratch[kWarps];
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) / a.heads;
  const std::int64_t h = static_cast<std::int64_t>(blockIdx.x) % a.heads;
  const std::int64_t head = t * a.heads + h;
  const std::int32_t* idx = a.idx + t * a.columns;
  const Bf16* q = a.q + head * a.head_dim;
  for (std::int64_t j = static_cast<int>(threadIdx.x) / kWarp; j < a.columns; j += kWarps) {
    const std::int32_t entry = idx[j];
    const float s = entry < 0 ? -INFINITY : warp_dot(q, attended_row(a, entry), a.head_dim) * a.scale;
    if (threadIdx.x % kWarp == 0) {
      weights[j] = s;
    }
  }
  __syncthreads();
  float largest = a.sink[h];
  for (std::int64_t j = threadIdx.x; j < a.columns; j += kThreads) {
    largest = fmaxf(largest, weights[j]);
  }
  const float m = block_max(largest, scratch);
  float sum = 0;
  for (std::int64_t j = threadIdx.x; j < a.columns; j += kThreads) {
    const float p = idx[j] < 0 ? 0.0F : expf(weights[j] - m);
    weights[j] = p;
    sum += p;
  }
  const float denominator = expf(a.sink[h] - m) + block_sum(sum, scratch);
  if (threadIdx.x == 0) {
    a.lse[head] = m + logf(denominator);
  }
  for (std::int64_t d = threadIdx.x; d < a.head_dim; d += kThreads) {
    float o = 0;
    for (std::int64_t j = 0; j < a.columns; ++j) {
      const std::int32_t entry = idx[j];
      if (entry >= 0) {
        o = fmaf(weights[j], widen(attended_row(a, entry)[d]), o);
      }
    }
    a.o[head * a.head_dim + d] = narrow(o / denominator);
  }
}

}  // namespace

std::size_t plain_shared_bytes(std::int64_t columns) noexcept {
  return static_cast<std::size_t>(columns) * sizeof(float);
}

void prepare_plain(std::int64_t columns) { allow_shared(plain, plain_shared_bytes(columns)); }

void launch_plain(const SparseAttentionArgs& args, cudaStream_t stream) {
  launch("sparse_attention_plain", plain, static_cast<unsigned>(args.tokens * args.heads), kThreads,
         plain_shared_bytes(args.columns), stream, args);
}

}  // namespace attndiff::kernels
