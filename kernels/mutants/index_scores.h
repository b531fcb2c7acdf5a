#pragma once

#include <cuda_runtime_api.h>

#include "kernels/index_scores.h"

namespace attndiff::kernels::mutants {

/// Index scores with steps that can be wrong. The defaults are right.
struct IndexScoreVariant {
  bool rectified = true;        ///< negative dots do not count
  bool weighted_first = false;  ///< the weight multiplies the dot before it is rectified
};

void launch_index_score_variant(const IndexScoreArgs& args, const IndexScoreVariant& variant, cudaStream_t stream);

}  // namespace attndiff::kernels::mutants
