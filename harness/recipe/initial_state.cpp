#include "harness/recipe/initial_state.h"

#include <algorithm>
#include <limits>

#include "harness/recipe/values.h"

namespace attndiff {
namespace {

std::int64_t start_of(const Recipe& recipe) { return recipe.steps.front().shape.start_pos; }

FixtureTensor window_rows(const Recipe& recipe, const LayerRole& role) {
  const std::int64_t window = recipe.config.window;
  const std::int64_t width = recipe.config.head_dim;
  const ProceduralTensor rule = state_rule(recipe, role, "window", DType::bf16, {window, width}, Rounding::fp8);
  if (start_of(recipe) >= window) {
    return rule;
  }
  Tensor rows = rule.materialise();
  const auto unwritten = rows.as<Bf16>().subspan(static_cast<std::size_t>(start_of(recipe) * width));
  std::fill(unwritten.begin(), unwritten.end(), Bf16{});
  return rows;
}

/// f32 [ratio, head_dim]: the members of the group that P cuts, then `fresh`.
Tensor partial_group(const Recipe& recipe, const LayerRole& role, const char* name, float fresh) {
  const std::int64_t width = recipe.config.head_dim;
  Tensor slots(DType::f32, {role.ratio, width});
  const auto values = slots.as<float>();
  std::fill(values.begin(), values.end(), fresh);
  const std::int64_t members = start_of(recipe) % role.ratio;
  if (members > 0) {
    const Tensor left = state_rule(recipe, role, name, DType::f32, {members, width}, std::nullopt).materialise();
    const auto from = left.as<float>();
    std::copy(from.begin(), from.end(), values.begin());
  }
  return slots;
}

bool publishes_keys(const LayerRole& role) { return role.is_kv_source && role.is_index_source; }

std::optional<std::int64_t> last_kv_source(const Recipe& recipe) {
  std::optional<std::int64_t> owner;
  for (const RecipeLayer& layer : recipe.layers) {
    owner = layer.role.is_kv_source ? layer.role.layer_id : owner;
  }
  return owner;
}

std::optional<std::int64_t> last_key_publisher(const Recipe& recipe) {
  const bool every_call = recipe.config.index_keys == IndexKeyRule::own;
  std::optional<std::int64_t> owner;
  std::int64_t latest = 1;  // tokens seen when the owner last published; none before the first token
  for (const RecipeLayer& layer : recipe.layers) {
    const LayerRole& role = layer.role;
    if (!publishes_keys(role)) {
      continue;
    }
    const std::int64_t seen = every_call ? start_of(recipe) : start_of(recipe) / role.ratio * role.ratio;
    if (seen >= latest) {
      latest = seen;
      owner = role.layer_id;
    }
  }
  return owner;
}

}  // namespace

std::vector<StateTensor> initial_state(const Recipe& recipe, const LayerRole& role) {
  std::vector<StateTensor> parts{{"window", window_rows(recipe, role)}};
  if (!role.is_kv_source) {
    return parts;
  }
  if (role.ratio > 1) {
    parts.push_back({"comp_kv_state", partial_group(recipe, role, "comp_kv_state", 0.0F)});
    parts.push_back(
        {"comp_score_state", partial_group(recipe, role, "comp_score_state", -std::numeric_limits<float>::infinity())});
  }
  const std::int64_t groups = start_of(recipe) / role.ratio;
  parts.push_back({"compress_kv", state_rule(recipe, role, "compress_kv", DType::bf16, {groups, recipe.config.head_dim},
                                             Rounding::fp4_e4m3)});
  if (role.is_index_source) {
    parts.push_back({"index_k", state_rule(recipe, role, "index_k", DType::bf16, {groups, recipe.config.index_head_dim},
                                           Rounding::fp4_e8m0)});
  }
  return parts;
}

SlotOwners declared_owners(const Recipe& recipe) {
  const std::optional<std::int64_t> by_default = last_kv_source(recipe);
  SlotOwners owners{.compress_kv = recipe.owners.compress_kv ? recipe.owners.compress_kv : by_default,
                    .index_k = recipe.owners.index_k ? recipe.owners.index_k : last_key_publisher(recipe)};
  for (std::optional<std::int64_t>* owner : {&owners.compress_kv, &owners.index_k}) {
    if (*owner == by_default) {
      owner->reset();
    }
  }
  return owners;
}

}  // namespace attndiff
