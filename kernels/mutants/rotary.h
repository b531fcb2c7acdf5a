#pragma once

#include <cuda_runtime_api.h>

#include "kernels/rotary.h"

namespace attndiff::kernels::mutants {

/// A rotation with parts that can be wrong. The defaults are right.
struct RotaryVariant {
  bool half_split = false;      ///< entry k is paired with entry k + half instead of its neighbour
  bool bf16_position = false;   ///< the position is rounded to bf16 before its phases are looked up
  bool by_group_index = false;  ///< rows of groups, which are `stride` positions apart, turn by their group's number
};

/// `to` may be `from`. The phases at the positions that a faulty variant looks up must have been filled.
void launch_rotary_variant(const RotaryArgs& args, const RotaryVariant& variant, cudaStream_t stream);

}  // namespace attndiff::kernels::mutants
