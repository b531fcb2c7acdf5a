#include "harness/import/model_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/import/json_file.h"
#include "harness/recipe/toml_table.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

using nlohmann::json;

/// Where a number stands: under one name in the checkpoint's config.json, under another in the inference code's.
/// A name with a dot lies in an object.
struct IntKey {
  std::int64_t ModelConfig::*member;
  const char* checkpoint;
  const char* inference;
};
struct RealKey {
  double ModelConfig::*member;
  const char* checkpoint;
  const char* inference;
};

constexpr std::array kInts{
    IntKey{&ModelConfig::dim, "hidden_size", "dim"},
    IntKey{&ModelConfig::n_heads, "num_attention_heads", "n_heads"},
    IntKey{&ModelConfig::head_dim, "head_dim", "head_dim"},
    IntKey{&ModelConfig::rope_dim, "qk_rope_head_dim", "rope_head_dim"},
    IntKey{&ModelConfig::q_rank, "q_lora_rank", "q_lora_rank"},
    IntKey{&ModelConfig::o_rank, "o_lora_rank", "o_lora_rank"},
    IntKey{&ModelConfig::groups, "o_groups", "o_groups"},
    IntKey{&ModelConfig::window, "sliding_window", "window_size"},
    IntKey{&ModelConfig::index_heads, "index_n_heads", "index_n_heads"},
    IntKey{&ModelConfig::index_head_dim, "index_head_dim", "index_head_dim"},
    IntKey{&ModelConfig::index_topk, "index_topk", "index_topk"},
    IntKey{&ModelConfig::cand_topk_blocks, "candidate_topk_blocks", "candidate_topk_blocks"},
    IntKey{&ModelConfig::cand_block, "candidate_block_size", "candidate_block_size"},
    IntKey{&ModelConfig::max_seq, "max_position_embeddings", "max_seq_len"},
    IntKey{&ModelConfig::orig_seq, "rope_scaling.original_max_position_embeddings", "original_seq_len"},
};
constexpr std::array kReals{
    RealKey{&ModelConfig::eps, "rms_norm_eps", "norm_eps"},
    RealKey{&ModelConfig::rope_theta, "rope_theta", "rope_theta"},
    RealKey{&ModelConfig::compress_rope_theta, "compress_rope_theta", "compress_rope_theta"},
    RealKey{&ModelConfig::rope_factor, "rope_scaling.factor", "rope_factor"},
    RealKey{&ModelConfig::beta_fast, "rope_scaling.beta_fast", "beta_fast"},
    RealKey{&ModelConfig::beta_slow, "rope_scaling.beta_slow", "beta_slow"},
};

/// One configuration object, in one of the two namings.
class ReleasedConfig {
 public:
  ReleasedConfig(const json& object, const std::string& file)
      : object_(object), file_(file), checkpoint_(object.contains("hidden_size")) {}

  [[nodiscard]] const char* name(const char* checkpoint, const char* inference) const {
    return checkpoint_ ? checkpoint : inference;
  }

  [[nodiscard]] std::int64_t integer(const std::string& key) const { return integer_of(required(key), key); }

  [[nodiscard]] double real(const std::string& key) const {
    const json& value = required(key);
    if (!value.is_number()) {
      reject(key, "wrong type", "a number", json_text(value));
    }
    return value.get<double>();
  }

  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& key) const {
    const json& value = required(key);
    if (!value.is_array()) {
      reject(key, "wrong type", "a list of integers", json_text(value));
    }
    std::vector<std::int64_t> list;
    for (const json& entry : value) {
      list.push_back(integer_of(entry, key));
    }
    return list;
  }

 private:
  [[noreturn]] void reject(const std::string& key, const std::string& problem, const std::string& expected,
                           const std::string& found) const {
    throw Error(ErrorKind::input, {file_, key, problem, expected, found});
  }

  [[nodiscard]] const json& required(const std::string& key) const {
    const json* object = &object_;
    std::size_t begin = 0;
    for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', begin)) {
      object = &member(*object, key.substr(begin, dot - begin), key);
      begin = dot + 1;
    }
    return member(*object, key.substr(begin), key);
  }

  [[nodiscard]] const json& member(const json& object, const std::string& name, const std::string& key) const {
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (found == object.end()) {
      reject(key, "missing key",
             checkpoint_ ? "a configuration as in the checkpoint's config.json" : "one as of the inference code",
             "nothing");
    }
    return *found;
  }

  [[nodiscard]] std::int64_t integer_of(const json& value, const std::string& key) const {
    constexpr std::int64_t kLargest = std::int64_t{1} << 40U;
    if (!value.is_number_integer() || value > kLargest || value < -1) {
      reject(key, "wrong value", "an integer from -1 to 2^40", json_text(value));
    }
    return value.get<std::int64_t>();
  }

  const json& object_;
  const std::string& file_;
  bool checkpoint_;
};

bool contains(const std::vector<std::int64_t>& list, std::int64_t v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

ModelDescription read_released(const std::string& path) {
  const json whole = read_json(path);
  const auto text = whole.find("text_config");
  const ReleasedConfig released(text == whole.end() ? whole : *text, path);
  ModelDescription model;
  for (const IntKey& key : kInts) {
    model.config.*key.member = released.integer(released.name(key.checkpoint, key.inference));
  }
  for (const RealKey& key : kReals) {
    model.config.*key.member = released.real(released.name(key.checkpoint, key.inference));
  }
  const auto ratios = released.integers("compress_ratios");
  const auto kv = released.integers(released.name("kv_source_layer_ids", "kv_source_layers"));
  const auto index = released.integers(released.name("index_source_layer_ids", "index_source_layers"));
  const std::int64_t candidates =
      released.integer(released.name("candidate_source_layer_id", "candidate_source_layer"));
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const auto id = static_cast<std::int64_t>(i);
    model.layers.push_back({.layer_id = id,
                            .ratio = ratios[i],
                            .is_kv_source = contains(kv, id),
                            .is_index_source = contains(index, id),
                            .is_candidate_source = id == candidates,
                            .uses_candidates = ratios[i] > 0 && candidates >= 0 && id > candidates});
  }
  return model;
}

std::string file_text(const std::string& path) {
  std::ifstream file = open_input(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

template <typename T>
T required(std::optional<T> value, const TomlTable& table, const char* key) {
  if (!value) {
    throw table.wrong(key, "missing key", "a number", "nothing");
  }
  return *value;
}

void read_toml_config(TomlTable& table, ModelConfig& config) {
  for (const ConfigInt& entry : config_ints()) {
    if (entry.member != &ModelConfig::max_tokens) {
      config.*entry.member = required(table.integer(entry.name), table, entry.name);
    }
  }
  for (const ConfigReal& entry : config_reals()) {
    config.*entry.member = required(table.real(entry.name), table, entry.name);
  }
  const std::string rule = table.text("index_keys").value_or(name_of(config.index_keys));
  if (rule != name_of(IndexKeyRule::slot) && rule != name_of(IndexKeyRule::own)) {
    throw table.wrong("index_keys", "unknown rule", "slot or own", rule);
  }
  config.index_keys = rule == name_of(IndexKeyRule::own) ? IndexKeyRule::own : IndexKeyRule::slot;
  table.finish();
}

ModelDescription read_toml(const std::string& path) {
  const toml::table document = parse_toml(file_text(path), path);
  TomlTable root(document, path, "");
  ModelDescription model;
  std::optional<TomlTable> config = root.table("config");
  if (!config) {
    throw root.wrong("config", "missing table", "[config] with every number", "nothing");
  }
  read_toml_config(*config, model.config);
  for (TomlTable& entry : root.tables("layers")) {
    LayerRole role;
    role.layer_id = required(entry.integer("layer_id"), entry, "layer_id");
    role.ratio = required(entry.integer("ratio"), entry, "ratio");
    for (const RoleFlag& flag : role_flags()) {
      role.*flag.member = entry.flag(flag.name).value_or(false);
    }
    entry.finish();
    model.layers.push_back(role);
  }
  root.finish();
  return model;
}

}  // namespace

ModelDescription read_model_description(const std::string& path) {
  return path.ends_with(".toml") ? read_toml(path) : read_released(path);
}

std::vector<LayerRole> chosen_layers(const ModelDescription& model, const std::vector<std::int64_t>& ids,
                                     const std::string& path) {
  std::vector<LayerRole> chosen;
  for (const std::int64_t id : ids) {
    const auto found = std::find_if(model.layers.begin(), model.layers.end(),
                                    [&](const LayerRole& role) { return role.layer_id == id; });
    if (found == model.layers.end()) {
      throw Error(ErrorKind::usage, {.file = path,
                                     .object = "layer " + std::to_string(id),
                                     .problem = "the model has no such layer",
                                     .expected = fmt::format("one of its {}", model.layers.size()),
                                     .found = std::to_string(id)});
    }
    chosen.push_back(*found);
  }
  std::sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a.layer_id < b.layer_id; });
  return chosen;
}

}  // namespace attndiff
