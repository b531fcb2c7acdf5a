#pragma once

#include <limits>
#include <optional>

#include "reference/sparse_attention.h"

namespace attndiff::mutants {

/// Sparse attention in float32 as a kernel does it: columns in tiles with a running maximum. The defaults are right.
struct AttentionForm {
  std::int64_t tile = 0;  ///< columns of a tile; 0: all in one
  bool guarded = true;    ///< a tile in which every entry is absent leaves the running sums alone
  bool sink_in_maximum = true;
  bool sink_in_denominator = true;
  float absent_score = -std::numeric_limits<float>::infinity();
  std::optional<float> poison = {};  ///< what a masked lane multiplies its zero weight by, where it does
  int weight_bits = 24;              ///< significant bits that a softmax weight keeps before the second product
  float scale_factor = 1;
  float lse_unit = 1;          ///< lse is divided by it
  std::size_t sink_shift = 0;  ///< head h takes the sink of head h + sink_shift

  void operator()(const reference::SparseAttentionArgs& args) const;
};

}  // namespace attndiff::mutants
