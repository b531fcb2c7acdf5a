#include "harness/recipe/contradictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reference/contract/families.h"
#include "reference/contract/weights.h"

namespace attndiff {
namespace {

using Sentences = std::vector<std::string>;

void check_count(const char* what, std::size_t count, Sentences& found) {
  if (count == 0 || count > static_cast<std::size_t>(kMostFixtureMembers)) {
    found.push_back(fmt::format("there are {} {}, not 1 to {}", count, what, kMostFixtureMembers));
  }
}

void check_steps(const Recipe& recipe, Sentences& found) {
  if (recipe.steps.empty()) {
    return;
  }
  const ModelConfig& c = recipe.config;
  std::int64_t position = recipe.steps.front().shape.start_pos;
  for (std::size_t i = 0; i < recipe.steps.size(); ++i) {
    const CallShape& call = recipe.steps[i].shape;
    const std::int64_t end = call.start_pos + call.tokens;
    if (call.start_pos != position) {
      found.push_back(fmt::format("step {}: starts at {}, the step before ends at {}", i, call.start_pos, position));
    }
    if (!call.prefill() && call.tokens != 1) {
      found.push_back(fmt::format("step {}: decodes {} tokens, only one is possible", i, call.tokens));
    }
    if (call.tokens > c.max_tokens) {
      found.push_back(fmt::format("step {}: {} tokens exceed max_tokens {}", i, call.tokens, c.max_tokens));
    }
    if (end > c.max_seq) {
      found.push_back(fmt::format("step {}: ends at {}, beyond max_seq {}", i, end, c.max_seq));
    }
    position = end;
  }
}

/// Follows the slots through the layers of one step.
class SlotWalk {
 public:
  explicit SlotWalk(Sentences& found) : found_(found) {}

  void visit(const LayerRole& layer) {
    if (layer.ratio == 0) {
      return;
    }
    if (layer.is_kv_source) {
      latents_ = &layer;
    } else {
      read("compress_kv", latents_, layer);
    }
    if (layer.is_index_source) {
      visit_index_source(layer);
    } else {
      read("selection", selection_, layer);
    }
  }

 private:
  void visit_index_source(const LayerRole& layer) {
    if (layer.is_kv_source) {
      keys_ = &layer;
    } else {
      read("index_k", keys_, layer);
    }
    if (layer.is_candidate_source) {
      candidates_ = &layer;
    }
    if (layer.uses_candidates) {
      read("candidates", candidates_, layer);
    }
    selection_ = &layer;
  }

  void read(const char* slot, const LayerRole* writer, const LayerRole& reader) {
    if (writer == nullptr) {
      found_.push_back(fmt::format("layer {} ({}): reads the slot {}, which no earlier layer writes", reader.layer_id,
                                   kind_of(reader), slot));
    } else if (writer->ratio != reader.ratio) {
      found_.push_back(fmt::format("layer {} ({}): reads the slot {} of layer {}, whose ratio is {}", reader.layer_id,
                                   kind_of(reader), slot, writer->layer_id, writer->ratio));
    }
  }

  Sentences& found_;
  const LayerRole* latents_ = nullptr;
  const LayerRole* keys_ = nullptr;
  const LayerRole* selection_ = nullptr;
  const LayerRole* candidates_ = nullptr;
};

void check_slots(const Recipe& recipe, Sentences& found) {
  SlotWalk walk(found);
  for (const RecipeLayer& layer : recipe.layers) {
    walk.visit(layer.role);
  }
}

void check_owner(const Recipe& recipe, const char* slot, std::optional<std::int64_t> owner, bool needs_keys,
                 Sentences& found) {
  if (!owner) {
    return;
  }
  if (!recipe.resumes()) {
    found.push_back(fmt::format("{}_owner is set, but the steps start at position 0, where slots are empty", slot));
  }
  const bool exists = std::any_of(recipe.layers.begin(), recipe.layers.end(), [&](const RecipeLayer& layer) {
    return layer.role.layer_id == *owner && layer.role.is_kv_source && (!needs_keys || layer.role.is_index_source);
  });
  if (!exists) {
    found.push_back(fmt::format("{}_owner is {}, which is no {} of the recipe", slot, *owner,
                                needs_keys ? "kv+index source" : "kv source"));
  }
}

void check_weights(const Recipe& recipe, Sentences& found) {
  std::set<std::string, std::less<>> names;
  std::set<std::string, std::less<>> matrices;
  const ModelFamily& family = family_named(recipe.config.family);
  for (const RecipeLayer& layer : recipe.layers) {
    for (const WeightSpec& spec : family.weights(recipe.config, layer.role)) {
      names.insert(spec.name);
      if (spec.shape.rank() == 2) {
        matrices.insert(spec.name);
      }
      if (layer.weights == WeightFormat::e4m3 && spec.may_be_e4m3 && spec.shape[1] % kE4m3Block != 0) {
        found.push_back(fmt::format("layer {}: {} {} cannot be e4m3, its inputs are no multiple of {}",
                                    layer.role.layer_id, spec.name, spec.shape.text(), kE4m3Block));
      }
    }
  }
  for (const auto& [name, mean] : recipe.values.mean) {
    if (!matrices.contains(name)) {
      found.push_back(fmt::format("values.mean.{}: no layer has a matrix of that name", name));
    }
    if (!std::isfinite(mean)) {
      found.push_back(fmt::format("values.mean.{} is {}, not a finite number", name, mean));
    }
  }
  for (const auto& [name, gain] : recipe.values.gain) {
    if (!names.contains(name)) {
      found.push_back(fmt::format("values.gain.{}: no layer has a weight of that name", name));
    }
    if (!(std::isfinite(gain) && gain > 0)) {
      found.push_back(fmt::format("values.gain.{} is {}, not a positive number", name, gain));
    }
  }
}

void check_values(const ValueRules& values, Sentences& found) {
  const auto require = [&](const char* name, double value, bool ok, const char* expected) {
    if (!(std::isfinite(value) && ok)) {
      found.push_back(fmt::format("values.{} is {}, not {}", name, value, expected));
    }
  };
  require("input_rms", values.input_rms, values.input_rms > 0, "a positive number");
  require("state_rms", values.state_rms, values.state_rms > 0, "a positive number");
  require("sink_spread", values.sink_spread, values.sink_spread >= 0, "a number of at least 0");
  require("input_mean", values.input_mean, true, "a finite number");
  require("sink_mean", values.sink_mean, true, "a finite number");
  for (const TokenRule& rule : values.tokens) {
    require("tokens.size", rule.size, rule.size >= 0, "a number of at least 0");
    if (rule.every < 1 || rule.at < 0 || rule.at >= rule.every) {
      found.push_back(fmt::format("values.tokens.at is {}, not in [0, {})", rule.at, rule.every));
    }
  }
  require("norm_spread", values.norm_spread, values.norm_spread >= 0 && values.norm_spread < 1, "in [0, 1)");
}

}  // namespace

std::vector<std::string> contradictions(const Recipe& recipe) {
  Sentences found = violations(recipe.config, recipe.roles());
  if (found.empty()) {
    check_weights(recipe, found);  // the shapes of unsound dimensions mean nothing
  }
  check_count("layers", recipe.layers.size(), found);
  check_count("steps", recipe.steps.size(), found);
  check_steps(recipe, found);
  check_slots(recipe, found);
  check_owner(recipe, "compress_kv", recipe.owners.compress_kv, false, found);
  check_owner(recipe, "index_k", recipe.owners.index_k, true, found);
  check_values(recipe.values, found);
  return found;
}

}  // namespace attndiff
