#include "harness/recipe/generate.h"

#include <cstring>

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
      Tensor values = rule.materialise();
      vary_blocks(values);
      writer.weight(index, spec.name, quantise_e4m3(values));
    } else {
      writer.weight(index, spec.name, rule);
    }
  }
}

void copy_row(const Tensor& from, std::int64_t row, Tensor& to, std::int64_t at) {
  const std::size_t bytes = static_cast<std::size_t>(to.shape()[1]) * sizeof(Bf16);
  std::memcpy(to.raw() + static_cast<std::size_t>(at) * bytes, from.raw() + static_cast<std::size_t>(row) * bytes,
              bytes);
}

/// bf16 [tokens, dim]: the row of the token at position p is row p % distinct_tokens.
Tensor repeated_inputs(const Recipe& recipe, const LayerRole& role, const CallShape& call) {
  const Tensor rows = distinct_inputs_rule(recipe, role).materialise();
  Tensor x(DType::bf16, {call.tokens, recipe.config.dim});
  for (std::int64_t t = 0; t < call.tokens; ++t) {
    copy_row(rows, (call.start_pos + t) % rows.shape()[0], x, t);
  }
  return x;
}

/// A rule where format 1 has one, else bytes.
FixtureTensor inputs(const Recipe& recipe, const LayerRole& role, const CallShape& call) {
  const ProceduralTensor rule = input_rule(recipe, role, call);
  if (!recipe.values.distinct_tokens && recipe.values.tokens.empty()) {
    return rule;
  }
  Tensor x = recipe.values.distinct_tokens ? repeated_inputs(recipe, role, call) : rule.materialise();
  for (std::int64_t t = 0; t < call.tokens; ++t) {
    if (const std::optional<Tensor> row = token_inputs(recipe, role, call.start_pos + t)) {
      copy_row(*row, 0, x, t);
    }
  }
  return x;
}

void write_inputs(const Recipe& recipe, std::size_t step, FixtureWriter& writer) {
  const CallShape& call = recipe.steps[step].shape;
  for (std::size_t layer = 0; layer < recipe.layers.size(); ++layer) {
    writer.input(step, layer, inputs(recipe, recipe.layers[layer].role, call));
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

void generate(const Recipe& recipe, const std::string& out_path, RuleForm rules) {
  FixtureWriter writer(out_path, {.producer = "attndiff generate",
                                  .note = recipe.note,
                                  .must_cover = recipe.must_cover,
                                  .config = recipe.config,
                                  .layers = recipe.roles(),
                                  .steps = recipe.steps,
                                  .rules = rules});
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
