#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reference/contract/config.h"
#include "reference/contract/landmarks.h"
#include "reference/contract/stage.h"
#include "reference/contract/tensor.h"

namespace attndiff {

/// Where the bad elements of a stage's tensor lie, in one sentence for whoever mends the kernel: tokens, heads and
/// columns; tiles of 8 to 128 and quantiser blocks they fill; the rotated tail, output groups, ring slots by age,
/// compressed positions by parity. The first description that holds is taken: every element; the whole of a product of
/// sets on the axes; a region across axes ("the in-progress group of each query"); a few elements, listed; tiles and
/// landmarks around a thin sample; else how many there are, and that they line up with nothing. A pattern is named only
/// where every bad element fits it and where random elements would not (axis_pattern.h).
/// `bad`: row-major positions in `shape`, ascending. None gives "no element".
[[nodiscard]] std::string locate(const StageInfo& stage, const ModelConfig& config, const LayerRole& role,
                                 const CallShape& call, const Shape& shape, std::span<const std::int64_t> bad);

/// The same with the landmarks given; axes that they do not name are called "axis 0", "axis 1", ...
[[nodiscard]] std::string locate(const Landmarks& landmarks, const Shape& shape, std::span<const std::int64_t> bad);

}  // namespace attndiff
