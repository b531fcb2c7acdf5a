#pragma once

#include <cstdint>
#include <span>

#include "reference/contract/tensor.h"
#include "reference/contract/weights.h"
#include "reference/thread_pool.h"

namespace attndiff::reference {

/// y[t][o] = sum_k x[t][k] * W[o][k] for a block of a weight's rows, products and sum in float32, not rounded.
struct ProductArgs {
  std::span<const float> x;   ///< [tokens, x_stride], values exact in the activation's type
  std::int64_t x_stride = 0;  ///< elements from one token's row to the next
  std::int64_t tokens = 0;
  std::int64_t depth = 0;      ///< K; the weight's second extent
  const Weight& weight;        ///< f32, bf16 or e4m3 with block scales
  std::int64_t row_begin = 0;  ///< first row of the weight
  std::int64_t rows = 0;       ///< output columns
  std::span<float> y;          ///< [tokens, y_stride]
  std::int64_t y_stride = 0;
};

/// The product in panels of kPanelRows weight rows, converted to float32 as they are used, and of a thousand tokens
/// where panels are few, spread over the pool.
/// The cut does not depend on the pool, so results do not either.
void product(ThreadPool& pool, const ProductArgs& args);

/// The same on the calling thread alone, for callers that spread many products over the pool: at most kPanelRows rows.
void product_of_panel(const ProductArgs& args);

inline constexpr std::int64_t kPanelRows = 64;

/// float32 values of rows [begin, begin + count) of a weight, exact: `out` is [count, depth].
void weight_rows(const Weight& weight, std::int64_t begin, std::int64_t count, std::span<float> out);

}  // namespace attndiff::reference
