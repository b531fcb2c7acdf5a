#pragma once

#include "reference/contract/weights.h"

namespace attndiff {

/// The released checkpoint's form of a weight: f32 [out, in] to e4m3 codes with one e8m0 scale per 32 x 32 block,
/// s = pow2ceil(max(|w|, 1e-4) / 448), the activation quantiser's rule on a square. Blocks at the edges are smaller.
[[nodiscard]] Weight quantise_e4m3(const Tensor& values);

/// Multiplies block (i, j) of a weight by 2^(1 - (i + 2j) % 3), so that neighbouring blocks have other scales along
/// both axes, and (i, j) mostly another one than (j, i). Uniform values alone would give all blocks one scale.
void vary_blocks(Tensor& values);

}  // namespace attndiff
