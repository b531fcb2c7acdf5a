#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attndiff {

/// In which order equal scores leave a selection.
enum class SelectionOrder : std::uint8_t { torch_cpu, unspecified };

/// How an implementation computes, as far as it moves results inside their bounds.
struct Arithmetic {
  std::string accumulator = "float32";  ///< accumulator type of the products
  bool bf16_softmax_weights = false;    ///< softmax weights rounded to bf16 before the second product
  int attention_splits = 1;             ///< partial softmax sums combined per query
};

/// Stages that run as one unit. Ids are those of the family's stage table.
struct Segment {
  std::vector<int> stages;
  std::vector<int> publishes;          ///< stages an observer can read
  std::vector<int> accepts;            ///< stages an observer can replace
  std::vector<int> skipped_roundings;  ///< stages whose own rounding the fused segment leaves out
};

/// What a backend says about itself before it runs: a stage that no segment publishes is unobserved.
struct Plan {
  std::vector<Segment> segments;
  SelectionOrder selection_order = SelectionOrder::torch_cpu;
  Arithmetic arithmetic;
};

}  // namespace attndiff
