#include "reference/deepseek_v41/sequence.h"

#include <algorithm>
#include <string>

#include "reference/contract/error.h"

namespace attndiff::deepseek_v41 {
namespace {

Error refusal(const LayerRole& role, const std::string& object, const std::string& problem,
              const std::string& expected = {}, const std::string& found = {}) {
  return {ErrorKind::refused,
          {.file = {},
           .object = "layer " + std::to_string(role.layer_id) + ": " + object,
           .problem = problem,
           .expected = expected,
           .found = found}};
}

const Tensor& required(const LayerRole& role, const char* name, const Tensor& part, DType dtype, const Shape& due) {
  if (!part.defined()) {
    throw refusal(role, std::string("initial state ") + name, "needed to start in mid-sequence, but not declared");
  }
  if (!(part.shape() == due) || part.dtype() != dtype) {
    throw refusal(role, std::string("initial state ") + name, "has the wrong type or shape",
                  std::string(name_of(dtype)) + " " + due.text(),
                  std::string(name_of(part.dtype())) + " " + part.shape().text());
  }
  return part;
}

void copy_into(std::span<float> out, const Tensor& from) {
  const auto values = from.as<float>();
  std::copy(values.begin(), values.end(), out.begin());
}

void restore_partial_group(const ModelConfig& c, const LayerRole& role, std::int64_t start_pos,
                           const InitialLayerState& declared, LayerState& state) {
  const bool between_groups = start_pos % role.ratio == 0;
  if (between_groups && !declared.comp_kv_state.defined() && !declared.comp_score_state.defined()) {
    return;
  }
  const Shape due{role.ratio, c.head_dim};
  const auto both = state.comp_state.as<float>();
  copy_into(both.first(both.size() / 2), required(role, "comp_kv_state", declared.comp_kv_state, DType::f32, due));
  copy_into(both.subspan(both.size() / 2),
            required(role, "comp_score_state", declared.comp_score_state, DType::f32, due));
}

LayerState restored(const Engine& engine, const LayerRole& role, std::int64_t start_pos,
                    const InitialLayerState& declared) {
  const ModelConfig& c = engine.config;
  LayerState state = engine.steps.new_state(c, role);
  state.ring = required(role, "window", declared.window, DType::bf16, {c.window, c.head_dim});
  if (!role.is_kv_source) {
    return state;
  }
  if (role.ratio > 1) {
    restore_partial_group(c, role, start_pos, declared, state);
  }
  const std::int64_t groups = start_pos / role.ratio;
  state.latents->write(
      0, required(role, "compress_kv", declared.compress_kv, DType::bf16, {groups, c.head_dim}).as<Bf16>());
  if (role.is_index_source) {
    state.index_keys->write(
        0, required(role, "index_k", declared.index_k, DType::bf16, {groups, c.index_head_dim}).as<Bf16>());
  }
  return state;
}

void check_owner(const char* name, std::optional<std::int64_t> owner, bool found) {
  if (owner && !found) {
    throw Error(ErrorKind::refused, {.file = {},
                                     .object = std::string("initial state ") + name,
                                     .problem = "names no layer that could have written the slot",
                                     .expected = "the layer_id of a source",
                                     .found = std::to_string(*owner)});
  }
}

std::shared_ptr<const RowCache> cache_of(const Tensor& rows) {
  auto cache = std::make_shared<RowCache>(rows.shape()[0], rows.shape()[1]);
  cache->write(0, rows.as<Bf16>());
  return cache;
}

}  // namespace

LayerStack::LayerStack(const Engine& engine, std::span<const LayerRole> layers)
    : engine_(engine), layers_(layers), states_(layers.size()), next_position_(layers.size(), 0) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    states_[i] = engine.steps.new_state(engine.config, layers[i]);
  }
}

void LayerStack::resume(std::int64_t start_pos, std::span<const InitialLayerState> states,
                        std::optional<std::int64_t> compress_kv_owner, std::optional<std::int64_t> index_k_owner) {
  if (states.size() != layers_.size()) {
    throw Error(ErrorKind::refused, {.file = {},
                                     .object = "initial state",
                                     .problem = "one for each layer is needed",
                                     .expected = std::to_string(layers_.size()),
                                     .found = std::to_string(states.size())});
  }
  slots_ = Slots{};
  last_layer_.reset();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerRole& role = layers_[i];
    states_[i] = restored(engine_, role, start_pos, states[i]);
    next_position_[i] = start_pos;
    if (!role.is_kv_source) {
      continue;
    }
    if (compress_kv_owner.value_or(role.layer_id) == role.layer_id) {
      slots_.compress_kv = {.value = states_[i].latents, .owner = role.layer_id};
    }
    if (role.is_index_source && index_k_owner.value_or(role.layer_id) == role.layer_id) {
      slots_.index_k = {.value = states_[i].index_keys, .owner = role.layer_id};
    }
  }
  check_owner("compress_kv_owner", compress_kv_owner, slots_.compress_kv.has_value());
  check_owner("index_k_owner", index_k_owner, slots_.index_k.has_value());
}

void LayerStack::begin_step(std::size_t layer, const CallShape& call) {
  if ((!last_layer_ || layer <= *last_layer_) && call.prefill()) {
    slots_ = Slots{};
  }
  last_layer_ = layer;
}

LayerResult LayerStack::forward(std::size_t layer, const LayerWeights& weights, const CallShape& call,
                                std::int64_t sequence, const Tensor& x, const SharedInputs* shared,
                                Observer& observer) {
  const LayerRole& role = layers_[layer];
  if (!call.prefill() && call.start_pos != next_position_[layer]) {
    throw refusal(role, "start_pos", "does not continue the sequence", std::to_string(next_position_[layer]),
                  std::to_string(call.start_pos));
  }
  check_call(engine_.config, role, call, x.shape());
  begin_step(layer, call);
  if (shared != nullptr) {
    constexpr std::int64_t kDeclared = -1;
    if (shared->compress_kv.defined()) {
      slots_.compress_kv = {.value = cache_of(shared->compress_kv), .owner = kDeclared};
    }
    if (shared->index_k.defined()) {
      slots_.index_k = {.value = cache_of(shared->index_k), .owner = kDeclared};
    }
    if (shared->selection.defined()) {
      slots_.selection = {.value = shared->selection, .owner = kDeclared};
    }
    if (shared->candidates.defined()) {
      slots_.candidates = {.value = shared->candidates, .owner = kDeclared};
    }
  }
  const LayerArgs args{.role = role,
                       .weights = weights,
                       .state = states_[layer],
                       .slots = slots_,
                       .call = call,
                       .sequence = sequence,
                       .x = x};
  LayerResult result = attention_any(engine_, args, observer);
  next_position_[layer] = call.start_pos + call.tokens;
  return result;
}

}  // namespace attndiff::deepseek_v41
