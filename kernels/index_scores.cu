#include "kernels/index_scores.h"
#include "kernels/launch.cuh"
#include "kernels/math.cuh"
#include "kernels/tensor_core.cuh"

namespace attndiff::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kKeys = 64;         // keys of a block, 16 a warp
constexpr int kKeysPerWarp = 16;  // rows of one matrix product
constexpr int kHeadTile = 16;     // heads loaded together: two products of 8 columns
constexpr int kPad = 8;           // 16 bytes a row keep ldmatrix free of bank conflicts

__host__ __device__ constexpr std::int64_t padded_heads(std::int64_t heads) {
  return (heads + kHeadTile - 1) / kHeadTile * kHeadTile;
}

/// Stages `rows` rows of `width` values, zeros from row `present` on.
__device__ __forceinline__ void stage_rows(std::uint16_t* shared, const Bf16* from, int rows, std::int64_t present,
                                           int width) {
  const int pieces = width / 8;
  for (int i = static_cast<int>(threadIdx.x); i < rows * pieces; i += kThreads) {
    const int row = i / pieces;
    const int piece = i % pieces;
    const bool inside = row < present;
    const Bf16* source = inside ? from + static_cast<std::int64_t>(row) * width + piece * 8 : from;
    copy_async_16(shared + row * (width + kPad) + piece * 8, source, inside);
  }
}

/// One head's share of a score; torch.relu lets NaN through.
__device__ __forceinline__ float head_term(float dot, float w) {
  const float rounded = round_to_bf16(dot);
  return round_to_bf16((rounded < 0 ? 0.0F : rounded) * w);
}

/// blockIdx.x: 64 keys, blockIdx.y: the query. Keys are the products' rows and heads their columns, so that a
/// thread sums heads in its own registers and then over the four lanes that share a row.
__global__ void __launch_bounds__(kThreads) index_scores(IndexScoreArgs a) {
  extern __shared__ std::uint16_t shared[];
  const int width = static_cast<int>(a.head_dim);
  const int pitch = width + kPad;
  const int heads = static_cast<int>(a.heads);
  const int head_rows = static_cast<int>(padded_heads(a.heads));
  std::uint16_t* keys = shared;
  std::uint16_t* queries = shared + kKeys * pitch;
  const std::int64_t t = blockIdx.y;
  const std::int64_t first_key = static_cast<std::int64_t>(blockIdx.x) * kKeys;
  stage_rows(keys, a.keys + first_key * width, kKeys, a.length - first_key, width);
  stage_rows(queries, a.q + t * heads * width, head_rows, heads, width);
  commit_copies();
  wait_copies<0>();
  __syncthreads();

  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const std::uint16_t* key_row = keys + (warp * kKeysPerWarp + lane % 16) * pitch + lane / 16 * 8;
  const std::uint16_t* query_row = queries + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8;
  float sum[2] = {0, 0};  // rows lane / 4 and lane / 4 + 8
  for (int head = 0; head < head_rows; head += kHeadTile) {
    float low[4] = {};
    float high[4] = {};
    for (int depth = 0; depth < width; depth += 16) {
      std::uint32_t k[4];
      std::uint32_t q[4];
      load_matrix_x4(k, key_row + depth);
      load_matrix_x4(q, query_row + head * pitch + depth);
      multiply_accumulate(low, k, q[0], q[1]);
      multiply_accumulate(high, k, q[2], q[3]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int h = head + lane % 4 * 2 + i;
      if (h < heads) {
        const float w = widen(a.w[t * heads + h]);
        sum[0] += head_term(low[i], w);
        sum[1] += head_term(low[2 + i], w);
      }
      if (h + 8 < heads) {
        const float w = widen(a.w[t * heads + h + 8]);
        sum[0] += head_term(high[i], w);
        sum[1] += head_term(high[2 + i], w);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += __shfl_xor_sync(kFullMask, sum[r], 1);
    sum[r] += __shfl_xor_sync(kFullMask, sum[r], 2);
    const std::int64_t p = first_key + warp * kKeysPerWarp + lane / 4 + r * 8;
    if (lane % 4 == 0 && p < a.length) {
      a.scores[t * a.length + p] = narrow(sum[r]);
    }
  }
}

constexpr std::int64_t kMostQueries = 65535;  // blocks a grid's y axis may have

}  // namespace

std::size_t index_score_shared_bytes(std::int64_t heads, std::int64_t head_dim) noexcept {
  return static_cast<std::size_t>((kKeys + padded_heads(heads)) * (head_dim + kPad)) * sizeof(Bf16);
}

void prepare_index_scores(std::int64_t heads, std::int64_t head_dim) {
  allow_shared(index_scores, index_score_shared_bytes(heads, head_dim));
}

void launch_index_scores(const IndexScoreArgs& args, cudaStream_t stream) {
  if (args.length == 0) {
    return;
  }
  for (std::int64_t first = 0; first < args.tokens; first += kMostQueries) {
    IndexScoreArgs part = args;
    part.tokens = args.tokens - first < kMostQueries ? args.tokens - first : kMostQueries;
    part.q += first * args.heads * args.head_dim;
    part.w += first * args.heads;
    part.scores += first * args.length;
    const dim3 grid(blocks_for(args.length, kKeys), static_cast<unsigned>(part.tokens));
    launch("index_scores", index_scores, grid, kThreads, index_score_shared_bytes(args.heads, args.head_dim), stream,
           part);
  }
}

}  // namespace attndiff::kernels
