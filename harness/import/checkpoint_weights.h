#pragma once

#include <string>

#include "harness/import/array_source.h"
#include "reference/contract/config.h"
#include "reference/contract/weights.h"

namespace attndiff {

/// The name that the released checkpoint gives a weight of the fixture format, below `layers.N.attn.`, without
/// ".weight": "indexer.wq_b" for idx_wq_b. `attn_sink` has no ".weight".
[[nodiscard]] std::string checkpoint_name(const std::string& weight);

/// Reads one weight of a layer in a form that a fixture holds: e4m3 codes with their scales stay so where the format
/// has them, and become their exact bf16 values elsewhere; everything else becomes the type of `spec`. Throws
/// Error(input) that names file and array: missing, wrong type or shape, a value that the type does not hold.
[[nodiscard]] Weight checkpoint_weight(const ArraySource& checkpoint, const std::string& prefix, std::int64_t layer_id,
                                       const WeightSpec& spec);

}  // namespace attndiff
