#pragma once

#include "reference/contract/observer.h"
#include "reference/contract/state.h"
#include "reference/contract/weights.h"
#include "reference/deepseek_v41/steps.h"
#include "reference/thread_pool.h"

namespace attndiff::deepseek_v41 {

/// What every layer of a run shares.
struct Engine {
  const ModelConfig& config;
  const Steps& steps;
  reference::ThreadPool& pool;
};

/// One layer's call: its weights, its state and the slots, which it reads and changes.
struct LayerArgs {
  const LayerRole& role;
  const LayerWeights& weights;
  LayerState& state;
  Slots& slots;
  CallShape call;
  std::int64_t sequence = 0;
  const Tensor& x;  ///< bf16 [tokens, dim], the layer's normed input
};

/// A layer's forward of DeepSeek-V4.1-Flash, every layer kind, prefill and decode (docs/numerics.md). Offers every
/// stage that exists in the call to the observer, in table order, with its value before the last rounding where
/// asked for. A call with start_pos 0 resets the layer's state; the caller empties the slots at a sequence's start.
/// Throws Error(refused) for a call the specification refuses; state and slots may then be half written.
LayerResult attention_any(const Engine& engine, const LayerArgs& args, Observer& observer);

/// The refusals that need nothing but the call: tokens, positions and widths. Throws Error(refused).
void check_call(const ModelConfig& config, const LayerRole& role, const CallShape& call, const Shape& x);

}  // namespace attndiff::deepseek_v41
