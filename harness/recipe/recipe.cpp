#include "harness/recipe/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "harness/files/text_file.h"
#include "harness/fixture/coverage_counters.h"
#include "harness/recipe/bases.h"
#include "harness/recipe/contradictions.h"
#include "harness/recipe/toml_table.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

constexpr std::int64_t kMostPositions = std::int64_t{1} << 24;

void read_listed_steps(TomlTable& root, std::vector<FixtureStep>& steps) {
  std::int64_t position = 0;
  for (TomlTable& entry : root.tables("steps")) {
    const std::optional<std::int64_t> tokens = entry.integer("tokens", 1, kMostPositions);
    if (!tokens) {
      throw entry.wrong("tokens", "missing key", "the number of tokens of this call", "nothing");
    }
    const std::int64_t start = entry.integer("start_pos", 0, kMostPositions).value_or(position);
    entry.finish();
    steps.push_back({.shape = {.tokens = *tokens, .start_pos = start}});
    position = start + *tokens;
  }
}

/// The compact form: `prefill` tokens in one call, then `decode` calls of one token, or those alone from `start_pos`.
void read_counted_steps(TomlTable& root, std::vector<FixtureStep>& steps) {
  std::int64_t position = root.integer("start_pos", 0, kMostPositions).value_or(0);
  const std::int64_t prefill = root.integer("prefill", 0, kMostPositions).value_or(0);
  const std::int64_t decode = root.integer("decode", 0, kMostFixtureMembers - 1).value_or(0);
  if (prefill > 0 && position > 0) {
    throw root.wrong("prefill", "a prefill starts a sequence, so it contradicts start_pos", "start_pos = 0",
                     fmt::format("start_pos = {}", position));
  }
  if (prefill > 0) {
    steps.push_back({.shape = {.tokens = prefill, .start_pos = 0}});
    position = prefill;
  }
  for (std::int64_t i = 0; i < decode; ++i) {
    steps.push_back({.shape = {.tokens = 1, .start_pos = position + i}});
  }
}

void read_steps(TomlTable& root, Recipe& recipe) {
  if (!root.has("steps")) {
    read_counted_steps(root, recipe.steps);
    return;
  }
  for (const char* key : {"start_pos", "prefill", "decode"}) {
    if (root.has(key)) {
      throw root.wrong(key, "contradicts steps", "either steps, or start_pos, prefill and decode", "both");
    }
  }
  read_listed_steps(root, recipe.steps);
}

WeightFormat read_weight_format(TomlTable& entry) {
  const std::string format = entry.text("weights").value_or("bf16");
  if (format != "bf16" && format != "e4m3") {
    throw entry.wrong("weights", "unknown weight format", "bf16 or e4m3", format);
  }
  return format == "e4m3" ? WeightFormat::e4m3 : WeightFormat::bf16;
}

void read_layers(TomlTable& root, Recipe& recipe) {
  for (TomlTable& entry : root.tables("layers")) {
    RecipeLayer layer;
    for (const auto& [key, member] : {std::pair{"layer_id", &LayerRole::layer_id}, {"ratio", &LayerRole::ratio}}) {
      const std::optional<std::int64_t> value = entry.integer(key);
      if (!value) {
        throw entry.wrong(key, "missing key", "an integer", "nothing");
      }
      layer.role.*member = *value;
    }
    for (const RoleFlag& flag : role_flags()) {
      layer.role.*flag.member = entry.flag(flag.name).value_or(false);
    }
    layer.weights = read_weight_format(entry);
    entry.finish();
    recipe.layers.push_back(layer);
  }
}

ModelConfig read_base(TomlTable& table) {
  const std::optional<std::string> name = table.text("base");
  if (!name) {
    return {};
  }
  const ModelConfig* base = find_base(*name);
  if (base == nullptr) {
    throw table.wrong("base", "unknown configuration", fmt::format("one of {}", fmt::join(base_names(), ", ")), *name);
  }
  return *base;
}

/// max_seq and max_tokens, where not given, are what the steps need.
void size_for_steps(Recipe& recipe) {
  for (const FixtureStep& step : recipe.steps) {
    recipe.config.max_seq = std::max(recipe.config.max_seq, step.shape.start_pos + step.shape.tokens);
    recipe.config.max_tokens = std::max(recipe.config.max_tokens, step.shape.tokens);
  }
}

void read_numbers(TomlTable& table, Recipe& recipe) {
  const bool may_miss = table.has("base");
  std::vector<std::string> missing;
  for (const ConfigInt& entry : config_ints()) {
    const bool sized = entry.member == &ModelConfig::max_seq || entry.member == &ModelConfig::max_tokens;
    if (const std::optional<std::int64_t> value = table.integer(entry.name)) {
      recipe.config.*entry.member = *value;
    } else if (!may_miss && !sized) {
      missing.emplace_back(entry.name);
    }
  }
  for (const ConfigReal& entry : config_reals()) {
    if (const std::optional<double> value = table.real(entry.name)) {
      recipe.config.*entry.member = *value;
    } else if (!may_miss) {
      missing.emplace_back(entry.name);
    }
  }
  if (!missing.empty()) {
    throw table.wrong(missing.front(), "without a base every number must be given", "a number",
                      fmt::format("no {}", fmt::join(missing, ", ")));
  }
}

IndexKeyRule read_index_keys(TomlTable& table, IndexKeyRule fallback) {
  const std::string rule = table.text("index_keys").value_or(name_of(fallback));
  for (const IndexKeyRule known : {IndexKeyRule::slot, IndexKeyRule::own}) {
    if (rule == name_of(known)) {
      return known;
    }
  }
  throw table.wrong("index_keys", "unknown rule", "slot or own", rule);
}

void read_config(TomlTable& root, Recipe& recipe) {
  std::optional<TomlTable> table = root.table("config");
  if (!table) {
    throw root.wrong("config", "missing table", "[config] with a base, or with every number", "nothing");
  }
  recipe.config = read_base(*table);
  size_for_steps(recipe);
  read_numbers(*table, recipe);
  const std::string known_family = recipe.config.family;
  recipe.config.family = table->text("family").value_or(known_family);
  if (find_family(recipe.config.family) == nullptr) {
    throw table->wrong("family", "unknown model family", known_family, recipe.config.family);
  }
  recipe.config.index_keys = read_index_keys(*table, recipe.config.index_keys);
  table->finish();
}

InputKind read_input_kind(TomlTable& entry) {
  const std::string name = entry.text("kind").value_or(name_of(InputKind::uniform));
  for (const InputKind kind : {InputKind::uniform, InputKind::constant, InputKind::heavy_tailed}) {
    if (name == name_of(kind)) {
      return kind;
    }
  }
  throw entry.wrong("kind", "unknown kind of inputs", "uniform, constant or heavy-tailed", name);
}

void read_token_rules(TomlTable& values, ValueRules& rules) {
  for (TomlTable& entry : values.tables("tokens")) {
    TokenRule rule;
    rule.every = entry.integer("every", 1, kMostPositions).value_or(rule.every);
    rule.at = entry.integer("at", 0, rule.every - 1).value_or(rule.at);
    rule.kind = read_input_kind(entry);
    rule.size = entry.real("size").value_or(rules.input_rms);
    entry.finish();
    rules.tokens.push_back(rule);
  }
}

void read_per_weight(TomlTable& values, const char* key, std::map<std::string, double, std::less<>>& into) {
  if (std::optional<TomlTable> table = values.table(key)) {
    for (const std::string& weight : table->keys()) {
      into[weight] = *table->real(weight);
    }
  }
}

void read_values(TomlTable& root, Recipe& recipe) {
  std::optional<TomlTable> table = root.table("values");
  if (!table) {
    return;
  }
  ValueRules& values = recipe.values;
  for (const auto& [key, member] : {std::pair{"input_rms", &ValueRules::input_rms},
                                    {"input_mean", &ValueRules::input_mean},
                                    {"norm_spread", &ValueRules::norm_spread},
                                    {"sink_spread", &ValueRules::sink_spread},
                                    {"sink_mean", &ValueRules::sink_mean},
                                    {"state_rms", &ValueRules::state_rms}}) {
    values.*member = table->real(key).value_or(values.*member);
  }
  values.distinct_tokens = table->integer("distinct_tokens", 1, kMostPositions);
  read_token_rules(*table, values);
  read_per_weight(*table, "gain", values.gain);
  read_per_weight(*table, "mean", values.mean);
  table->finish();
}

void read_owners(TomlTable& root, Recipe& recipe) {
  std::optional<TomlTable> table = root.table("initial_state");
  if (!table) {
    return;
  }
  recipe.owners.compress_kv = table->integer("compress_kv_owner");
  recipe.owners.index_k = table->integer("index_k_owner");
  table->finish();
}

void refuse_contradictions(const Recipe& recipe, const std::string& source) {
  const std::vector<std::string> found = contradictions(recipe);
  if (!found.empty()) {
    throw Error(ErrorKind::input, {.file = source,
                                   .object = "recipe",
                                   .problem = fmt::format("{} contradiction(s)", found.size()),
                                   .expected = "a sound recipe",
                                   .found = fmt::format("{}", fmt::join(found, "; "))});
  }
}

}  // namespace

const char* name_of(InputKind kind) noexcept {
  switch (kind) {
    case InputKind::uniform:
      return "uniform";
    case InputKind::constant:
      return "constant";
    case InputKind::heavy_tailed:
      return "heavy-tailed";
  }
  return "?";
}

std::vector<LayerRole> Recipe::roles() const {
  std::vector<LayerRole> roles;
  for (const RecipeLayer& layer : layers) {
    roles.push_back(layer.role);
  }
  return roles;
}

namespace {

/// The declaration as written, once it is known to name counters.
std::string read_must_cover(TomlTable& root, const std::string& source) {
  std::string declared = root.text("must_cover").value_or("");
  try {
    static_cast<void>(parse_must_cover(declared, "must_cover"));
  } catch (const Error& error) {
    throw error.in_file(source);
  }
  return declared;
}

}  // namespace

Recipe parse_recipe(std::string_view text, const std::string& source) {
  const toml::table document = parse_toml(text, source);
  TomlTable root(document, source, "");
  Recipe recipe;
  recipe.note = root.text("note").value_or("");
  recipe.must_cover = read_must_cover(root, source);
  recipe.seed =
      static_cast<std::uint64_t>(root.integer("seed", 0, std::numeric_limits<std::int64_t>::max()).value_or(0));
  read_steps(root, recipe);
  read_layers(root, recipe);
  read_config(root, recipe);
  read_values(root, recipe);
  read_owners(root, recipe);
  root.finish();
  refuse_contradictions(recipe, source);
  return recipe;
}

Recipe read_recipe(const std::string& path) {
  return parse_recipe(read_text_file(path, {.what = "a TOML recipe", .megabytes = 10}), path);
}

}  // namespace attndiff
