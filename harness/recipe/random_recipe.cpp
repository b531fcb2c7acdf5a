#include "harness/recipe/random_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/recipe/bases.h"
#include "harness/recipe/draw.h"
#include "harness/recipe/initial_state.h"

namespace attndiff {
namespace {

/// Small dimensions under the family's rules: whole quantiser blocks of 32, also for the inputs of e4m3 weights.
ModelConfig random_config(Draw& draw) {
  ModelConfig c = *find_base("tiny");
  c.dim = draw.of<std::int64_t>({32, 64, 96});
  c.head_dim = draw.of<std::int64_t>({32, 32, 64});
  c.rope_dim = draw.of<std::int64_t>({2, 8, 16, 32});
  c.groups = draw.between(1, 2);
  c.n_heads = 2 * draw.between(1, 3);
  c.q_rank = draw.of<std::int64_t>({32, 64});
  c.o_rank = draw.of<std::int64_t>({32, 32, 64});
  c.window = draw.between(3, 9);
  c.index_heads = draw.between(1, 4);
  c.index_head_dim = draw.of<std::int64_t>({32, 32, 64});
  c.index_topk = draw.between(1, 8);
  c.cand_topk_blocks = draw.between(1, 3);
  c.cand_block = draw.between(2, 4);
  c.orig_seq = draw.of<std::int64_t>({0, 16, 64, 4096});
  c.rope_factor = draw.of({4.0, 16.0, 40.0});
  c.eps = draw.of({1e-20, 1e-20, 1e-6});
  c.index_keys = draw.of({IndexKeyRule::slot, IndexKeyRule::own});
  return c;
}

/// A stack of layers in which every layer finds the slots it reads.
class Stack {
 public:
  explicit Stack(Draw& draw) : draw_(draw) {}

  std::vector<RecipeLayer> layers() {
    const std::int64_t count = draw_.between(1, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      add(next());
    }
    return std::move(layers_);
  }

 private:
  LayerRole next() {
    if (draw_.once_in(6)) {
      return {};
    }
    // A layer that reads slots needs the ratio of the source before it.
    if (ratio_ == 0 || draw_.once_in(3)) {
      return source();
    }
    return draw_.once_in(2) ? index_source() : reader();
  }

  LayerRole source() {
    ratio_ = draw_.of<std::int64_t>({1, 1, 1, 2, 2, 3, 4, 5});
    LayerRole role{.ratio = ratio_, .is_kv_source = true, .is_index_source = true};
    role.is_candidate_source = draw_.once_in(2);
    candidates_ = role.is_candidate_source;
    return role;
  }

  LayerRole index_source() {
    LayerRole role{.ratio = ratio_, .is_index_source = true};
    role.uses_candidates = candidates_ && draw_.below(4) != 0;
    role.is_candidate_source = !role.uses_candidates && draw_.once_in(4);
    candidates_ = candidates_ || role.is_candidate_source;
    return role;
  }

  LayerRole reader() { return {.ratio = ratio_, .uses_candidates = candidates_}; }

  void add(LayerRole role) {
    // Ids need not follow one another.
    id_ += draw_.between(1, 2);
    role.layer_id = id_;
    layers_.push_back({.role = role, .weights = draw_.once_in(4) ? WeightFormat::e4m3 : WeightFormat::bf16});
  }

  Draw& draw_;
  std::vector<RecipeLayer> layers_;
  std::int64_t id_ = -1;
  std::int64_t ratio_ = 0;
  bool candidates_ = false;
};

void append_decode(std::vector<FixtureStep>& steps, std::int64_t position, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    steps.push_back({.shape = {.tokens = 1, .start_pos = position + i}});
  }
}

std::vector<FixtureStep> random_steps(Draw& draw, const Recipe& recipe) {
  std::vector<FixtureStep> steps;
  const std::int64_t window = recipe.config.window;
  if (draw.once_in(4)) {
    // A far start costs a declared row for each compressed position of each source.
    const bool compressed = std::any_of(recipe.layers.begin(), recipe.layers.end(),
                                        [](const RecipeLayer& layer) { return layer.role.ratio > 0; });
    constexpr std::int64_t kFar = 1048000;
    const std::int64_t start = compressed
                                   ? draw.of({draw.between(1, 2 * window), draw.between(1, 60), draw.between(60, 600)})
                                   : draw.of({draw.between(1, 60), draw.between(60, kFar)});
    append_decode(steps, start, draw.between(2, 4));
    return steps;
  }
  const std::int64_t prefill =
      draw.of({draw.between(1, 4), window, window + 1, draw.between(5, 20), 2 * window + draw.between(0, 3)});
  steps.push_back({.shape = {.tokens = prefill, .start_pos = 0}});
  append_decode(steps, prefill, draw.between(0, 4));
  return steps;
}

void add_token_rules(Draw& draw, ValueRules& values) {
  constexpr double kDenormal = 0x1p-128;
  const auto one = [&](double size) {
    TokenRule rule{.every = draw.between(2, 7), .kind = {}, .size = size};
    rule.at = draw.between(0, rule.every - 1);
    rule.kind = draw.of({InputKind::uniform, InputKind::constant, InputKind::heavy_tailed});
    values.tokens.push_back(rule);
  };
  // Sums of squares stay far from overflow: where a row's own nearly overflow, orders would differ.
  one(std::min(0x1p40, values.input_rms * draw.of({1.0, 1.0, 0x1p-20, 0x1p20})));
  if (draw.once_in(3)) {
    one(draw.of({0.0, kDenormal}));
  }
}

/// Whether the slot `index_k`, which keeps the keys of whoever completed a group last, always has the rows that the
/// next index source scores.
bool slot_keys_suffice(const Recipe& recipe) {
  const std::optional<std::int64_t> owner = declared_owners(recipe).index_k;
  std::int64_t rows = 0;
  for (const RecipeLayer& layer : recipe.layers) {
    const LayerRole& role = layer.role;
    // Undeclared, the owner is the last source.
    if (role.is_kv_source && (!owner || *owner == role.layer_id)) {
      rows = recipe.steps.front().shape.start_pos / role.ratio;
    }
  }
  for (const FixtureStep& step : recipe.steps) {
    const std::int64_t end = step.shape.start_pos + step.shape.tokens;
    for (const RecipeLayer& layer : recipe.layers) {
      const LayerRole& role = layer.role;
      if (!role.is_index_source) {
        continue;
      }
      const std::int64_t len = end / role.ratio;
      if (role.is_kv_source && len > step.shape.start_pos / role.ratio) {
        rows = len;
      }
      if (len > rows) {
        return false;
      }
    }
  }
  return true;
}

bool any_source(const Recipe& recipe) {
  return std::any_of(recipe.layers.begin(), recipe.layers.end(),
                     [](const RecipeLayer& layer) { return layer.role.is_kv_source; });
}

/// Gains that move whole stages up or down.
void vary_gains(Draw& draw, const Recipe& recipe, ValueRules& values) {
  values.gain["wo_a"] = draw.of({1.0, 0x1p-40, 0x1p40});
  values.gain["wo_b"] = draw.of({1.0, 0x1p-60, 0x1p60});
  if (any_source(recipe)) {
    values.gain["idx_wk"] = draw.of({0x1p-20, 1.0, 0x1p20});
    values.gain["idx_k_norm"] = draw.of({0x1p-20, 1.0, 0x1p20});
    values.gain["idx_weights_proj"] = draw.of({0x1p-20, 1.0, 0x1p20});
    values.mean["idx_weights_proj"] = draw.of({0.0, 4.0, -4.0});
  }
}

/// Scores far apart, rows of many sizes, sinks far above or below all scores.
void make_extreme(Draw& draw, const Recipe& recipe, ValueRules& values) {
  values.sink_spread = draw.of({2.0, 256.0});
  values.sink_mean = draw.of({0.0, 40.0, -40.0});
  values.state_rms = draw.of({1.0, 0x1p-6, 64.0});
  values.gain["wq_b"] = draw.of({0.1, 1.0, 4.0, 0x1p-30});
  values.gain["kv_norm"] = draw.of({0.01, 1.0, 4.0});
  if (any_source(recipe)) {
    values.gain["comp_norm"] = draw.of({0x1p-9, 1.0, 4096.0});
  }
}

ValueRules random_values(Draw& draw, const Recipe& recipe, bool ordinary) {
  ValueRules values;
  values.input_rms = draw.of({1.0, 1.0, 1.0, 0x1p-40, 0x1p-10, 0x1p10, 0x1p40});
  values.input_mean = draw.of({0.0, 0.0, 1.0}) * values.input_rms;
  values.norm_spread = draw.of({0.2, 0.9});
  if (draw.once_in(4)) {
    values.distinct_tokens = draw.between(2, 5);
  }
  if (draw.once_in(3)) {
    add_token_rules(draw, values);
  }
  if (draw.once_in(2)) {
    vary_gains(draw, recipe, values);
  }
  if (!ordinary) {
    make_extreme(draw, recipe, values);
  }
  return values;
}

}  // namespace

RandomRecipe random_recipe(std::uint64_t seed) {
  Draw draw(seed);
  RandomRecipe random;
  random.ordinary = !draw.once_in(3);
  Recipe& recipe = random.recipe;
  recipe.note = fmt::format("random recipe of seed {}", seed);
  recipe.seed = seed;
  recipe.config = random_config(draw);
  recipe.layers = Stack(draw).layers();
  recipe.steps = random_steps(draw, recipe);
  for (const FixtureStep& step : recipe.steps) {
    recipe.config.max_seq = std::max(recipe.config.max_seq, step.shape.start_pos + step.shape.tokens);
    recipe.config.max_tokens = std::max(recipe.config.max_tokens, step.shape.tokens);
  }
  if (recipe.config.index_keys == IndexKeyRule::slot && !slot_keys_suffice(recipe)) {
    recipe.config.index_keys = IndexKeyRule::own;
  }
  recipe.values = random_values(draw, recipe, random.ordinary);
  return random;
}

}  // namespace attndiff
