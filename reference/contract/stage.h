#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/contract/config.h"
#include "reference/contract/tensor.h"
#include "reference/contract/weights.h"

namespace attndiff {

/// What a stage's values are, and so how they can be compared.
enum class StageKind : std::uint8_t {
  real,   ///< rounded real numbers
  code,   ///< values on a quantiser's grid
  index,  ///< positions, -1 for absent
  mask,   ///< 0 or 1
  state,  ///< a layer's state after the call
};

/// The rounding that produced a stage's values.
enum class Rounding : std::uint8_t { none, f32, bf16, fp8, fp4_e8m0, fp4_e4m3, mixed };

[[nodiscard]] const char* name_of(StageKind kind) noexcept;
[[nodiscard]] const char* name_of(Rounding rounding) noexcept;

/// One row of a family's ordered stage table.
struct StageInfo {
  int id = 0;  ///< position in the table
  std::string_view name;
  StageKind kind = StageKind::real;
  DType dtype = DType::bf16;
  Rounding rounding = Rounding::bf16;
  std::vector<int> inputs;  ///< ids of the stages it is computed from (besides x, weights and state)
  /// A discrete value, or one that decides a selection: in free mode the reference follows the candidate's, once it has
  /// been judged, so that what comes after is judged by itself.
  bool followed = false;
  /// Made by sums whose order is free: two correct implementations may round to different sides even from equal inputs.
  bool summed = false;
  /// Its shape in a call, or nothing where the layer's kind or the call has no such stage.
  std::optional<Shape> (*shape)(const ModelConfig&, const LayerRole&, const CallShape&) = nullptr;
  /// Must be observable in every implementation: a layer's result, the state it leaves, the selection it makes.
  bool required = false;
  /// Sums rows by softmax weights: a plan may declare these rounded.
  bool weighted_by_softmax = false;
  /// Weights whose activation it is: one that is stored as e4m3 has it quantised first, which is a decision as well.
  std::vector<std::string_view> activates{};
};

struct BoundInputs;  // reference/bound_inputs.h

/// How far a correct implementation's stage may lie from the reference's unrounded one, given the same inputs, before
/// it is rounded itself.
struct StageSlack {
  Tensor values;  ///< f32, the stage's shape
  /// For each row, the most by which one rounding on the way may move it, in 2-norm: a correct row is off by it or not
  /// at all, where most of the slack is what many small errors may add up to. Empty where nothing is rounded on the
  /// way.
  std::vector<float> moves{};
};

/// A model family: the ordered table of its layer's stages and the weights a layer needs.
struct ModelFamily {
  std::string_view name;
  std::span<const StageInfo> stages;
  std::vector<WeightSpec> (*weights)(const ModelConfig&, const LayerRole&) = nullptr;
  /// Nothing for a stage that its inputs determine exactly.
  std::optional<StageSlack> (*slack)(int stage, const BoundInputs& inputs) = nullptr;
  /// How many products the longest float32 sum behind an element of the stage has; 0 where there is none.
  std::int64_t (*terms)(int stage, const ModelConfig&, const LayerRole&, const CallShape&) = nullptr;

  /// The stage of that name, or nullptr.
  [[nodiscard]] const StageInfo* find(std::string_view stage) const noexcept;
};

}  // namespace attndiff
