#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "harness/fixture/procedural.h"
#include "harness/recipe/recipe.h"
#include "reference/contract/weights.h"

namespace attndiff {

/// Seed of the tensor at `path`: splitmix64's finaliser of FNV-1a(path) + finaliser(recipe seed + golden gamma).
/// Paths name layers by layer_id and steps by start_pos, so a tensor keeps its values when layers or steps are added.
[[nodiscard]] std::uint64_t tensor_seed(std::uint64_t recipe_seed, std::string_view path) noexcept;

/// Path "/layers/<layer_id>/weights/<name>".
[[nodiscard]] ProceduralTensor weight_rule(const Recipe& recipe, const LayerRole& role, const WeightSpec& spec);

/// Path "/steps/<start_pos>/layers/<layer_id>/x": bf16 [tokens, dim].
[[nodiscard]] ProceduralTensor input_rule(const Recipe& recipe, const LayerRole& role, const CallShape& call);

/// The rows behind `distinct_tokens`, path "/distinct_tokens/layers/<layer_id>/x": bf16 [distinct_tokens, dim].
[[nodiscard]] ProceduralTensor distinct_inputs_rule(const Recipe& recipe, const LayerRole& role);

/// The inputs of the token at `position` where one of the recipe's token rules holds for it: bf16 [dim], uniform
/// numbers u in [-1, 1) from the path "/tokens/<position>/layers/<layer_id>/x" made into the rule's kind: scaled, the
/// first one's sign, or u / (1 + 2^-10 - |u|). Nothing where no rule holds.
[[nodiscard]] std::optional<Tensor> token_inputs(const Recipe& recipe, const LayerRole& role, std::int64_t position);

/// Declared rows of a layer, path "/initial_state/layers/<layer_id>/<name>": `width` columns with the recipe's
/// state_rms, on the grid of `then` where there is one.
[[nodiscard]] ProceduralTensor state_rule(const Recipe& recipe, const LayerRole& role, std::string_view name,
                                          DType dtype, const Shape& shape, std::optional<Rounding> then);

}  // namespace attndiff
