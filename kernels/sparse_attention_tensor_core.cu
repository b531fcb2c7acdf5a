#include "kernels/launch.cuh"
#include "kernels/sparse_attention_forms.cuh"
#include "kernels/tensor_core.cuh"

namespace attndiff::kernels {
namespace {

// One block computes `kHeads` heads of one query, and of the output `kColumns` columns; it scores whole rows, so blocks
// that share a query repeat the scores. Rows pass in tiles of 32 through two buffers filled by cp.async; a tile with no
// present entry is left out, which is also why padding with -1 changes no bit. Softmax runs online in float32: running
// maximum and denominator start at the sink (m = sink, den = 1), so no tile needs a special case.
//
// The softmax weights stay float32: p = hi + mid + lo with hi = bf16(p), mid = bf16(p - hi), lo = p - hi - mid. Three
// times 8 significand bits hold all 24, so the split is exact unless lo falls below bfloat16's smallest subnormal
// (2^-133), and the second product is three tensor-core products with float32 accumulation. What remains is the tensor
// core's accumulation error, about one float32 unit of the largest partial sum for each 16 rows (2^-23 relative), as
// far below bfloat16's 2^-9 as a float32 loop's.
//
// Every output element sees the same operations in the same order whatever the form, so its bits do not depend on it.

constexpr int kTile = 32;  // rows a tile; one lane each in the softmax
constexpr int kPad = 8;    // 16 bytes a row keep ldmatrix free of bank conflicts
constexpr int kParts = 3;  // bf16 parts of a softmax weight
constexpr int kMma = 16;   // heads of one matrix product
constexpr int kScorePitch = kTile + 4;
constexpr int kWeightPitch = kTile + kPad;

template <int HeadDim, int HeadWarps, int ColumnWarps, int Columns>
struct Form {
  static constexpr int kHeadDim = HeadDim;
  static constexpr int kColumnWarps = ColumnWarps;
  static constexpr int kColumns = Columns;  ///< output columns of a block
  static constexpr int kWarps = HeadWarps * ColumnWarps;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kHeads = HeadWarps * kMma;
  static constexpr int kPitch = HeadDim + kPad;
  static constexpr int kScoreColumns = kTile / ColumnWarps;       ///< rows of a tile a warp scores
  static constexpr int kOutputTiles = Columns / ColumnWarps / 8;  ///< 8-column products a warp accumulates
  static constexpr int kSlices = HeadDim / Columns;
  static_assert(kScoreColumns == 8 || kScoreColumns == 16);
  static_assert(kOutputTiles % 2 == 0 && HeadDim % Columns == 0);

  // Offsets in shared memory, bytes.
  static constexpr std::size_t kQuery = 0;
  static constexpr std::size_t kRows = kQuery + sizeof(std::uint16_t) * kHeads * kPitch;
  static constexpr std::size_t kWeights = kRows + sizeof(std::uint16_t) * 2 * kTile * kPitch;
  static constexpr std::size_t kScores = kWeights + sizeof(std::uint16_t) * kParts * kHeads * kWeightPitch;
  static constexpr std::size_t kRunning = kScores + sizeof(float) * kHeads * kScorePitch;
  static constexpr std::size_t kIdx = kRunning + sizeof(float) * 3 * kHeads;
};

using Wide512 = Form<512, 4, 2, 512>;
using Narrow512 = Form<512, 1, 4, 128>;
using Narrow64 = Form<64, 1, 4, 64>;

__host__ __device__ constexpr int tiles_for(std::int64_t columns) {
  return static_cast<int>((columns + kTile - 1) / kTile);
}

/// One block's view of its shared memory.
template <typename F>
struct Stage {
  std::uint16_t* query;    ///< [kHeads][kPitch]
  std::uint16_t* rows;     ///< [2][kTile][kPitch]
  std::uint16_t* weights;  ///< [kParts][kHeads][kWeightPitch]
  float* scores;           ///< [kHeads][kScorePitch]
  float* m;                ///< [kHeads]
  float* den;              ///< [kHeads]
  float* rescale;          ///< [kHeads]
  std::int32_t* idx;       ///< [tiles * kTile]
  std::int32_t* active;    ///< [tiles]: tiles with a present entry
  std::int32_t* count;     ///< [1]

  __device__ Stage(unsigned char* shared, int tiles)
      : query(reinterpret_cast<std::uint16_t*>(shared + F::kQuery)),
        rows(reinterpret_cast<std::uint16_t*>(shared + F::kRows)),
        weights(reinterpret_cast<std::uint16_t*>(shared + F::kWeights)),
        scores(reinterpret_cast<float*>(shared + F::kScores)),
        m(reinterpret_cast<float*>(shared + F::kRunning)),
        den(m + F::kHeads),
        rescale(den + F::kHeads),
        idx(reinterpret_cast<std::int32_t*>(shared + F::kIdx)),
        active(idx + tiles * kTile),
        count(active + tiles) {}
};

/// Copies the query's indices (-1 past the last column) and lists the tiles that have a present entry.
template <typename F>
__device__ void list_tiles(const SparseAttentionArgs& a, std::int64_t t, int tiles, Stage<F>& s) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int tile = static_cast<int>(threadIdx.x) / kWarp; tile < tiles; tile += F::kWarps) {
    const int j = tile * kTile + lane;
    const std::int32_t entry = j < a.columns ? a.idx[t * a.columns + j] : -1;
    s.idx[j] = entry;
    const unsigned present = __ballot_sync(kFullMask, entry >= 0);
    if (lane == 0) {
      s.active[tile] = present != 0 ? 1 : 0;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int count = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      if (s.active[tile] != 0) {
        s.active[count++] = tile;
      }
    }
    *s.count = count;
  }
}

/// Starts copying the heads' query rows; heads past the last are zeros.
template <typename F>
__device__ void copy_query(const SparseAttentionArgs& a, std::int64_t t, int first_head, Stage<F>& s) {
  constexpr int kPieces = F::kHeadDim / 8;
  for (int i = static_cast<int>(threadIdx.x); i < F::kHeads * kPieces; i += F::kThreads) {
    const int row = i / kPieces;
    const int piece = i % kPieces;
    const bool inside = first_head + row < a.heads;
    const Bf16* from = inside ? a.q + (t * a.heads + first_head + row) * F::kHeadDim + piece * 8 : a.q;
    copy_async_16(s.query + row * F::kPitch + piece * 8, from, inside);
  }
}

/// Starts copying one tile's rows; an absent row is zeros and its memory is not read.
template <typename F>
__device__ void copy_tile(const SparseAttentionArgs& a, int tile, int buffer, Stage<F>& s) {
  constexpr int kPieces = F::kHeadDim / 8;
  std::uint16_t* rows = s.rows + buffer * kTile * F::kPitch;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kPieces; i += F::kThreads) {
    const int row = i / kPieces;
    const int piece = i % kPieces;
    const std::int32_t entry = s.idx[tile * kTile + row];
    const Bf16* from = entry < 0 ? a.q : attended_row(a, entry) + piece * 8;
    copy_async_16(rows + row * F::kPitch + piece * 8, from, entry >= 0);
  }
}

/// Scores of the warp's 16 heads against its share of the tile's rows.
template <typename F>
__device__ void score_tile(const SparseAttentionArgs& a, int tile, const std::uint16_t* rows, Stage<F>& s) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int head = warp / F::kColumnWarps * kMma;
  const int column = warp % F::kColumnWarps * F::kScoreColumns;
  const std::uint16_t* query = s.query + (head + lane % 16) * F::kPitch + lane / 16 * 8;
  // With 8 columns a warp the second pair of matrices repeats the first and is not used.
  const int row = F::kScoreColumns == 16 ? lane / 16 * 8 + lane % 8 : lane % 8;
  const std::uint16_t* key = rows + (column + row) * F::kPitch + lane / 8 % 2 * 8;
  float c[F::kScoreColumns / 8][4] = {};
#pragma unroll 8
  for (int depth = 0; depth < F::kHeadDim; depth += kMma) {
    std::uint32_t q[4];
    std::uint32_t k[4];
    load_matrix_x4(q, query + depth);
    load_matrix_x4(k, key + depth);
#pragma unroll
    for (int n = 0; n < F::kScoreColumns / 8; ++n) {
      multiply_accumulate(c[n], q, k[2 * n], k[2 * n + 1]);
    }
  }
#pragma unroll
  for (int n = 0; n < F::kScoreColumns / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int j = column + n * 8 + lane % 4 * 2 + i % 2;
      const int h = head + lane / 4 + i / 2 * 8;
      s.scores[h * kScorePitch + j] = s.idx[tile * kTile + j] < 0 ? -INFINITY : c[n][i] * a.scale;
    }
  }
}

/// One online softmax step: weights of the tile in three bf16 parts, running maximum and denominator.
template <typename F>
__device__ void softmax_tile(Stage<F>& s) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int h = static_cast<int>(threadIdx.x) / kWarp; h < F::kHeads; h += F::kWarps) {
    const float score = s.scores[h * kScorePitch + lane];
    const float before = s.m[h];
    const float m = fmaxf(before, warp_max(score));
    const float p = score == -INFINITY ? 0.0F : expf(score - m);
    const float rescale = m == before ? 1.0F : expf(before - m);
    const float sum = warp_sum(p);
    float rest = p;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const std::uint16_t bits = narrow_bits(rest);
      s.weights[(part * F::kHeads + h) * kWeightPitch + lane] = bits;
      rest -= widen(bits);
    }
    __syncwarp();
    if (lane == 0) {
      s.m[h] = m;
      s.den[h] = s.den[h] * rescale + sum;
      s.rescale[h] = rescale;
    }
  }
}

/// Rescales the accumulators and adds the tile's weighted rows.
template <typename F>
__device__ void add_tile(const std::uint16_t* rows, int first_column, const Stage<F>& s,
                         float (&o)[F::kOutputTiles][4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int head = static_cast<int>(threadIdx.x) / kWarp / F::kColumnWarps * kMma;
  const float upper = s.rescale[head + lane / 4];
  const float lower = s.rescale[head + lane / 4 + 8];
#pragma unroll
  for (int n = 0; n < F::kOutputTiles; ++n) {
    o[n][0] *= upper;
    o[n][1] *= upper;
    o[n][2] *= lower;
    o[n][3] *= lower;
  }
#pragma unroll
  for (int depth = 0; depth < kTile; depth += kMma) {
    std::uint32_t p[kParts][4];
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      load_matrix_x4(p[part], s.weights + (part * F::kHeads + head + lane % 16) * kWeightPitch + depth + lane / 16 * 8);
    }
    const std::uint16_t* value = rows + (depth + lane % 16) * F::kPitch + first_column + lane / 16 * 8;
#pragma unroll
    for (int n = 0; n < F::kOutputTiles; n += 2) {
      std::uint32_t v[4];
      load_matrix_x4_transposed(v, value + n * 8);
#pragma unroll
      for (int part = kParts - 1; part >= 0; --part) {
        multiply_accumulate(o[n], p[part], v[0], v[1]);
        multiply_accumulate(o[n + 1], p[part], v[2], v[3]);
      }
    }
  }
}

template <typename F>
__device__ void store(const SparseAttentionArgs& a, std::int64_t t, int first_head, int first_column, const Stage<F>& s,
                      const float (&o)[F::kOutputTiles][4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int head = static_cast<int>(threadIdx.x) / kWarp / F::kColumnWarps * kMma;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int h = head + lane / 4 + half * 8;
    if (first_head + h < a.heads) {
      const float den = s.den[h];
      Bf16* to = a.o + (t * a.heads + first_head + h) * F::kHeadDim + first_column + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < F::kOutputTiles; ++n) {
        const unsigned low = narrow_bits(o[n][2 * half] / den);
        const unsigned high = narrow_bits(o[n][2 * half + 1] / den);
        *reinterpret_cast<unsigned*>(to + n * 8) = low | high << 16U;
      }
    }
  }
}

template <typename F>
__global__ void __launch_bounds__(F::kThreads, 1) tensor_core(SparseAttentionArgs a) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int tiles = tiles_for(a.columns);
  Stage<F> s(shared, tiles);
  const std::int64_t t = blockIdx.x;
  const int first_head = static_cast<int>(blockIdx.y) * F::kHeads;
  const int warp_columns = F::kColumns / F::kColumnWarps;
  const int first_column = static_cast<int>(blockIdx.z) * F::kColumns +
                           static_cast<int>(threadIdx.x) / kWarp % F::kColumnWarps * warp_columns;
  copy_query(a, t, first_head, s);
  list_tiles(a, t, tiles, s);
  for (int h = static_cast<int>(threadIdx.x); h < F::kHeads; h += F::kThreads) {
    s.m[h] = first_head + h < a.heads ? a.sink[first_head + h] : 0.0F;
    s.den[h] = 1.0F;
  }
  __syncthreads();

  float o[F::kOutputTiles][4] = {};
  const int count = *s.count;
  if (count > 0) {
    copy_tile(a, s.active[0], 0, s);
  }
  commit_copies();
  for (int i = 0; i < count; ++i) {
    if (i + 1 < count) {
      copy_tile(a, s.active[i + 1], (i + 1) % 2, s);
    }
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    const std::uint16_t* rows = s.rows + i % 2 * kTile * F::kPitch;
    score_tile(a, s.active[i], rows, s);
    __syncthreads();
    softmax_tile(s);
    __syncthreads();
    add_tile(rows, first_column, s, o);
    __syncthreads();
  }
  wait_copies<0>();
  store(a, t, first_head, first_column, s, o);
  if (blockIdx.z == 0) {
    for (int h = static_cast<int>(threadIdx.x); h < F::kHeads && first_head + h < a.heads; h += F::kThreads) {
      a.lse[t * a.heads + first_head + h] = s.m[h] + logf(s.den[h]);
    }
  }
}

template <typename F>
std::size_t bytes_of(std::int64_t columns) {
  const auto tiles = static_cast<std::size_t>(tiles_for(columns));
  return F::kIdx + sizeof(std::int32_t) * (tiles * kTile + tiles + 1);
}

template <typename F>
void run(const SparseAttentionArgs& a, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(a.tokens), blocks_for(a.heads, F::kHeads), F::kSlices);
  launch("sparse_attention_tensor_core", tensor_core<F>, grid, F::kThreads, bytes_of<F>(a.columns), stream, a);
}

}  // namespace

std::size_t tensor_core_shared_bytes(AttentionForm form, std::int64_t head_dim, std::int64_t columns) noexcept {
  if (head_dim == Narrow64::kHeadDim) {
    return bytes_of<Narrow64>(columns);
  }
  return form == AttentionForm::wide ? bytes_of<Wide512>(columns) : bytes_of<Narrow512>(columns);
}

void prepare_tensor_core(std::int64_t head_dim, std::int64_t columns) {
  if (head_dim == Narrow64::kHeadDim) {
    allow_shared(tensor_core<Narrow64>, bytes_of<Narrow64>(columns));
  } else if (head_dim == Wide512::kHeadDim) {
    allow_shared(tensor_core<Wide512>, bytes_of<Wide512>(columns));
    allow_shared(tensor_core<Narrow512>, bytes_of<Narrow512>(columns));
  }
}

void launch_tensor_core(const SparseAttentionArgs& args, AttentionForm form, cudaStream_t stream) {
  if (args.head_dim == Narrow64::kHeadDim) {
    run<Narrow64>(args, stream);
  } else if (form == AttentionForm::wide) {
    run<Wide512>(args, stream);
  } else {
    run<Narrow512>(args, stream);
  }
}

}  // namespace attndiff::kernels
