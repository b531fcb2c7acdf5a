#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <limits>

#include "kernels/sparse_attention.h"

namespace attndiff::kernels::mutants {

/// How one float32 kernel of sparse attention computes: columns in tiles with a running maximum and denominator, the
/// sink joined at the end. The defaults are right; every other value but `tile` and `splits` is a fault.
struct AttentionVariant {
  std::int64_t tile = 32;   ///< columns that share one update of the running maximum
  unsigned splits = 1;      ///< column ranges summed apart and combined at the end, at most `columns`
  bool guarded = true;      ///< a tile without an entry leaves the running sums alone
  bool sink_counts = true;  ///< the sink is part of the denominator
  float absent_score = -std::numeric_limits<float>::infinity();
  bool reads_absent = false;         ///< an absent entry's row, which holds NaN, is multiplied by its weight of zero
  bool bf16_weights = false;         ///< weights are rounded to bf16 before the second product; no fault where declared
  std::int64_t heads_unwritten = 0;  ///< the last heads' output tile is never stored
};

/// Any head_dim up to 512.
void launch_attention_variant(const SparseAttentionArgs& args, const AttentionVariant& variant, cudaStream_t stream);

}  // namespace attndiff::kernels::mutants
