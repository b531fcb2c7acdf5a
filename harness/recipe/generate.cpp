#include "harness/recipe/generate.h"

#include <cstring>

#include "harness/fixture/writer.h"
#include "harness/recipe/e4m3_weight.h"
#include "harness/recipe/initial_state.h"
#include "harness/recipe/values.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

void write_weights(const Recipe& recipe, std::size_t index, FixtureWriter& writer) {
  const RecipeLayer& layer = recipe.layers[index];
  for (const WeightSpec& spec : family_named(recipe.config.family).weights(recipe.config, layer.role)) {
    ProceduralTensor rule = weight_rule(recipe, layer.role, spec);
    if (layer.weights == WeightFormat::e4m3 && spec.may_be_e4m3) {
      rule.dtype = DType::f32;
      writer.weight(index, spec.name, quantise_e4m3(rule.materialise()));
    } else {
      writer.weight(index, spec.name, rule);
    }
  }
}

/// bf16 [tokens, dim]: the row of the token at position p is row p % distinct_tokens.
Tensor repeated_inputs(const Recipe& recipe, const LayerRole& role, const CallShape& call) {
  const Tensor rows = distinct_inputs_rule(recipe, role).materialise();
  const std::int64_t distinct = rows.shape()[0];
  const std::size_t row_bytes = static_cast<std::size_t>(recipe.config.dim) * sizeof(Bf16);
  Tensor x(DType::bf16, {call.tokens, recipe.config.dim});
  for (std::int64_t t = 0; t < call.tokens; ++t) {
    const auto from = static_cast<std::size_t>((call.start_pos + t) % distinct);
    std::memcpy(x.raw() + static_cast<std::size_t>(t) * row_bytes, rows.raw() + from * row_bytes, row_bytes);
  }
  return x;
}

void write_inputs(const Recipe& recipe, std::size_t step, FixtureWriter& writer) {
  const CallShape& call = recipe.steps[step].shape;
  for (std::size_t layer = 0; layer < recipe.layers.size(); ++layer) {
    const LayerRole& role = recipe.layers[layer].role;
    if (recipe.values.distinct_tokens) {
      writer.input(step, layer, repeated_inputs(recipe, role, call));
    } else {
      writer.input(step, layer, input_rule(recipe, role, call));
    }
  }
}

void write_initial_state(const Recipe& recipe, FixtureWriter& writer) {
  for (std::size_t layer = 0; layer < recipe.layers.size(); ++layer) {
    for (const StateTensor& part : initial_state(recipe, recipe.layers[layer].role)) {
      writer.initial_state(layer, part.name, part.value);
    }
  }
  const SlotOwners owners = declared_owners(recipe);
  if (owners.compress_kv || owners.index_k) {
    writer.slot_owners(owners.compress_kv, owners.index_k);
  }
}

}  // namespace

void generate(const Recipe& recipe, const std::string& out_path) {
  FixtureWriter writer(out_path, {.producer = "attndiff generate",
                                  .note = recipe.note,
                                  .must_cover = recipe.must_cover,
                                  .config = recipe.config,
                                  .layers = recipe.roles(),
                                  .steps = recipe.steps});
  for (std::size_t layer = 0; layer < recipe.layers.size(); ++layer) {
    write_weights(recipe, layer, writer);
  }
  if (recipe.resumes()) {
    write_initial_state(recipe, writer);
  }
  for (std::size_t step = 0; step < recipe.steps.size(); ++step) {
    write_inputs(recipe, step, writer);
  }
  writer.finish();
}

}  // namespace attndiff
