#include "kernels/launch.cuh"
#include "kernels/math.cuh"
#include "kernels/mutants/index_scores.h"

namespace attndiff::kernels::mutants {
namespace {

constexpr int kThreads = 128;

/// A head's share before its last rounding.
__device__ float head_term(float dot, float w, const IndexScoreVariant& v) {
  if (v.weighted_first) {
    return fmaxf(dot * w, 0.0F);
  }
  return (v.rectified ? fmaxf(dot, 0.0F) : dot) * w;
}

/// One thread a score.
__global__ void __launch_bounds__(kThreads) index_score_variant(IndexScoreArgs a, IndexScoreVariant v) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= a.tokens * a.length) {
    return;
  }
  const std::int64_t t = i / a.length;
  const Bf16* key = a.keys + i % a.length * a.head_dim;
  float sum = 0;
  for (std::int64_t h = 0; h < a.heads; ++h) {
    const Bf16* q = a.q + (t * a.heads + h) * a.head_dim;
    float dot = 0;
    for (std::int64_t d = 0; d < a.head_dim; ++d) {
      dot = fmaf(widen(q[d]), widen(key[d]), dot);
    }
    sum += round_to_bf16(head_term(round_to_bf16(dot), widen(a.w[t * a.heads + h]), v));
  }
  a.scores[i] = narrow(sum);
}

}  // namespace

void launch_index_score_variant(const IndexScoreArgs& args, const IndexScoreVariant& variant, cudaStream_t stream) {
  if (args.tokens * args.length > 0) {
    launch("index_score_variant", index_score_variant, blocks_for(args.tokens * args.length, kThreads), kThreads, 0,
           stream, args, variant);
  }
}

}  // namespace attndiff::kernels::mutants
