#include "kernels/compressor.h"
#include "kernels/launch.cuh"
#include "kernels/math.cuh"

namespace attndiff::kernels {
namespace {

constexpr int kTile = 64;   // tokens and outputs of a block's tile
constexpr int kDepth = 16;  // inputs staged at a time
constexpr int kSide = 16;   // the block is kSide x kSide threads
constexpr int kPerThread = kTile / kSide;
constexpr int kPitch = kTile + 4;  // staggers the banks of consecutive depths

/// One 64 x 64 tile of k (blockIdx.z == 0) or g (1). Staged depth-major, so that a thread reads four neighbours at
/// once.
__global__ void __launch_bounds__(kSide* kSide) product_tiled(CompressorProductArgs a) {
  __shared__ alignas(16) float xs[kDepth][kPitch];
  __shared__ alignas(16) float ws[kDepth][kPitch];
  const float* w = blockIdx.z == 0 ? a.wkv : a.wgate;
  float* y = blockIdx.z == 0 ? a.k : a.g;
  const std::int64_t first_token = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t first_output = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / kSide;
  const int column = thread % kSide;
  float sum[kPerThread][kPerThread] = {};
  for (std::int64_t begin = 0; begin < a.dim; begin += kDepth) {
    for (int i = thread; i < kTile * kDepth; i += kSide * kSide) {
      const int line = i / kDepth;
      const int depth = i % kDepth;
      const bool inside = begin + depth < a.dim;
      const std::int64_t t = first_token + line;
      const std::int64_t o = first_output + line;
      xs[depth][line] = inside && t < a.tokens ? widen(a.x[t * a.dim + begin + depth]) : 0.0F;
      ws[depth][line] = inside && o < a.width ? w[o * a.dim + begin + depth] : 0.0F;
    }
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < kDepth; ++depth) {
      const float4 xv = *reinterpret_cast<const float4*>(&xs[depth][row * kPerThread]);
      const float4 wv = *reinterpret_cast<const float4*>(&ws[depth][column * kPerThread]);
      const float xr[kPerThread] = {xv.x, xv.y, xv.z, xv.w};
      const float wr[kPerThread] = {wv.x, wv.y, wv.z, wv.w};
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
        for (int j = 0; j < kPerThread; ++j) {
          sum[i][j] = fmaf(xr[i], wr[j], sum[i][j]);
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      const std::int64_t t = first_token + row * kPerThread + i;
      const std::int64_t o = first_output + column * kPerThread + j;
      if (t < a.tokens && o < a.width) {
        y[t * a.width + o] = sum[i][j];
      }
    }
  }
}

constexpr int kTokenThreads = 128;
constexpr int kPerLane = 8;

__device__ __forceinline__ float dot8(uint4 x, float4 low, float4 high, float sum) {
  const unsigned words[4] = {x.x, x.y, x.z, x.w};
  const float w[kPerLane] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum = fmaf(__uint_as_float(words[i] << 16U), w[2 * i], sum);
    sum = fmaf(__uint_as_float(words[i] & 0xffff0000U), w[2 * i + 1], sum);
  }
  return sum;
}

__global__ void __launch_bounds__(kTokenThreads) product_token(CompressorProductArgs a) {
  const float* w = blockIdx.y == 0 ? a.wkv : a.wgate;
  float* y = blockIdx.y == 0 ? a.k : a.g;
  const std::int64_t output =
      static_cast<std::int64_t>(blockIdx.x) * (kTokenThreads / kWarp) + static_cast<int>(threadIdx.x) / kWarp;
  if (output >= a.width) {
    return;
  }
  const auto* x = reinterpret_cast<const uint4*>(a.x);
  const auto* row = reinterpret_cast<const float4*>(w + output * a.dim);
  float sum = 0;
#pragma unroll 4
  for (std::int64_t i = static_cast<int>(threadIdx.x) % kWarp; i < a.dim / kPerLane; i += kWarp) {
    sum = dot8(x[i], row[2 * i], row[2 * i + 1], sum);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) {
    y[output] = sum;
  }
}

constexpr int kPoolThreads = 256;

__global__ void __launch_bounds__(kPoolThreads) pool(PoolArgs a) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kPoolThreads + threadIdx.x;
  if (i >= a.groups * a.width) {
    return;
  }
  const std::int64_t begin = i / a.width * a.ratio * a.width + i % a.width;
  float largest = a.g[begin];
  for (std::int64_t m = 1; m < a.ratio; ++m) {
    const float v = a.g[begin + m * a.width];
    largest = isnan(v) || v > largest ? v : largest;
  }
  float denominator = 0;
  for (std::int64_t m = 0; m < a.ratio; ++m) {
    denominator += expf(a.g[begin + m * a.width] - largest);
  }
  float sum = 0;
  for (std::int64_t m = 0; m < a.ratio; ++m) {
    const std::int64_t at = begin + m * a.width;
    sum += expf(a.g[at] - largest) / denominator * a.k[at];
  }
  a.pooled[i] = narrow(sum);
}

__global__ void __launch_bounds__(kPoolThreads) partial_write(PartialWriteArgs a) {
  const std::int64_t d = static_cast<std::int64_t>(blockIdx.x) * kPoolThreads + threadIdx.x;
  if (d < a.width) {
    const std::int64_t at = a.step->partial_slot * a.width + d;
    a.state[at] = a.k[d];
    a.state[a.ratio * a.width + at] = a.g[d];
  }
}

}  // namespace

void launch_compressor_product_tiled(const CompressorProductArgs& args, cudaStream_t stream) {
  if (args.tokens > 0) {
    const dim3 grid(blocks_for(args.tokens, kTile), blocks_for(args.width, kTile), 2);
    launch("product_tiled", product_tiled, grid, kSide * kSide, 0, stream, args);
  }
}

void launch_compressor_product_token(const CompressorProductArgs& args, cudaStream_t stream) {
  const dim3 grid(blocks_for(args.width, kTokenThreads / kWarp), 2);
  launch("product_token", product_token, grid, kTokenThreads, 0, stream, args);
}

void launch_compressor_product(const CompressorProductArgs& args, cudaStream_t stream) {
  if (args.tokens == 1 && args.dim % kPerLane == 0) {
    launch_compressor_product_token(args, stream);
  } else {
    launch_compressor_product_tiled(args, stream);
  }
}

void launch_pool(const PoolArgs& args, cudaStream_t stream) {
  if (args.groups > 0) {
    launch("pool", pool, blocks_for(args.groups * args.width, kPoolThreads), kPoolThreads, 0, stream, args);
  }
}

void launch_partial_write(const PartialWriteArgs& args, cudaStream_t stream) {
  launch("partial_write", partial_write, blocks_for(args.width, kPoolThreads), kPoolThreads, 0, stream, args);
}

}  // namespace attndiff::kernels
