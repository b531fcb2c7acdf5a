#include "kernels/launch.cuh"
#include "kernels/mutants/attention.h"
#include "kernels/sparse_attention_forms.cuh"
#include "reference/contract/error.h"

namespace attndiff::kernels::mutants {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kPerThread = 4;  // output columns of a thread

/// One head's softmax over the columns seen so far, and its thread's part of the weighted sum of rows.
struct Running {
  float m = -INFINITY;
  float den = 0;
  float o[kPerThread] = {};

  __device__ void rescale(float to) {
    const float factor = m == to ? 1.0F : expf(m - to);
    den *= factor;
    for (float& v : o) {
      v *= factor;
    }
    m = to;
  }
};

__device__ float score_of(const SparseAttentionArgs& a, const AttentionVariant& v, const Bf16* q, std::int32_t entry) {
  if (entry < 0) {
    return v.absent_score;
  }
  const Bf16* row = attended_row(a, entry);
  float sum = 0;
  for (std::int64_t d = static_cast<int>(threadIdx.x) % kWarp; d < a.head_dim; d += kWarp) {
    sum = fmaf(widen(q[d]), widen(row[d]), sum);
  }
  return warp_sum(sum) * a.scale;
}

/// Adds the weighted row of one entry to the thread's output columns.
__device__ void add_row(const SparseAttentionArgs& a, const AttentionVariant& v, std::int32_t entry, float p,
                        Running& r) {
  const float weight = v.bf16_weights ? round_to_bf16(p) : p;
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t d = threadIdx.x + static_cast<std::int64_t>(i) * kThreads;
    if (d >= a.head_dim) {
      break;
    }
    if (entry >= 0) {
      r.o[i] = fmaf(weight, widen(attended_row(a, entry)[d]), r.o[i]);
    } else if (v.reads_absent) {
      r.o[i] = fmaf(weight, NAN, r.o[i]);
    }
  }
}

/// Adds columns [begin, end) tile by tile; every thread follows the same maximum and denominator.
__device__ void add_columns(const SparseAttentionArgs& a, const AttentionVariant& v, const std::int32_t* idx,
                            const float* scores, std::int64_t begin, std::int64_t end, Running& r) {
  for (std::int64_t first = begin; first < end; first += v.tile) {
    const std::int64_t last = first + v.tile < end ? first + v.tile : end;
    float largest = r.m;
    for (std::int64_t j = first; j < last; ++j) {
      largest = fmaxf(largest, scores[j]);
    }
    if (largest == -INFINITY && v.guarded) {
      continue;
    }
    r.rescale(largest);
    for (std::int64_t j = first; j < last; ++j) {
      // Unguarded, a tile without entries leaves the maximum at -inf, and -inf - -inf is NaN.
      const float p = expf(scores[j] - r.m);
      r.den += p;
      add_row(a, v, idx[j], p, r);
    }
  }
}

__device__ void combine(const AttentionVariant& v, Running part, Running& all) {
  const float m = fmaxf(all.m, part.m);
  if (m == -INFINITY && v.guarded) {
    return;
  }
  all.rescale(m);
  part.rescale(m);
  all.den += part.den;
  for (int i = 0; i < kPerThread; ++i) {
    all.o[i] += part.o[i];
  }
}

/// One query and head a block.
__global__ void __launch_bounds__(kThreads, 4) attention_variant(SparseAttentionArgs a, AttentionVariant v) {
  extern __shared__ float scores[];
  const auto heads = static_cast<unsigned>(a.heads);
  const auto columns = static_cast<unsigned>(a.columns);
  const std::int64_t t = blockIdx.x / heads;
  const std::int64_t h = blockIdx.x % heads;
  const std::int64_t head = t * a.heads + h;
  const std::int32_t* idx = a.idx + t * a.columns;
  for (std::int64_t j = static_cast<int>(threadIdx.x) / kWarp; j < a.columns; j += kWarps) {
    const float s = score_of(a, v, a.q + head * a.head_dim, idx[j]);
    if (threadIdx.x % kWarp == 0) {
      scores[j] = s;
    }
  }
  __syncthreads();
  Running all;
  for (unsigned split = 0; split < v.splits; ++split) {
    Running part;
    add_columns(a, v, idx, scores, columns * split / v.splits, columns * (split + 1) / v.splits, part);
    combine(v, part, all);
  }
  all.rescale(fmaxf(all.m, a.sink[h]));
  if (v.sink_counts) {
    all.den += expf(a.sink[h] - all.m);
  }
  if (threadIdx.x == 0) {
    a.lse[head] = all.m + logf(all.den);
  }
  if (h >= a.heads - v.heads_unwritten) {
    return;
  }
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t d = threadIdx.x + static_cast<std::int64_t>(i) * kThreads;
    if (d < a.head_dim) {
      a.o[head * a.head_dim + d] = narrow(all.o[i] / all.den);
    }
  }
}

}  // namespace

void launch_attention_variant(const SparseAttentionArgs& args, const AttentionVariant& variant, cudaStream_t stream) {
  if (args.head_dim > kThreads * kPerThread) {
    throw Error(ErrorKind::internal, "this kernel has no output columns beyond 512");
  }
  if (args.tokens > 0) {
    const std::size_t shared = static_cast<std::size_t>(args.columns) * sizeof(float);
    allow_shared(attention_variant, shared);
    launch("attention_variant", attention_variant, static_cast<unsigned>(args.tokens * args.heads), kThreads, shared,
           stream, args, variant);
  }
}

}  // namespace attndiff::kernels::mutants
