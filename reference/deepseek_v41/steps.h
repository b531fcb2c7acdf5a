#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/compressor.h"
#include "reference/contract/config.h"
#include "reference/contract/state.h"
#include "reference/indexer.h"
#include "reference/product.h"
#include "reference/quantize.h"
#include "reference/rms_norm.h"
#include "reference/rotary.h"
#include "reference/selection.h"
#include "reference/sparse_attention.h"
#include "reference/window.h"

namespace attndiff::deepseek_v41 {

/// The steps a layer's forward is composed of, each replaceable by one that computes something else: another
/// summation order, or a known fault whose discovery is to be proved. The defaults are the specification's.
struct Steps {
  std::function<std::vector<float>(const ModelConfig&, std::int64_t ratio)> frequencies = reference::rotary_frequencies;
  std::function<float(float frequency, std::int64_t position)> angle = reference::rotary_angle;
  std::function<void(std::span<float>, const reference::RotaryPhase&)> rotate = reference::rotate;
  std::function<void(std::span<float>, const reference::RotaryPhase&)> rotate_back = reference::rotate_back;

  std::function<void(std::span<const float> x, std::span<const float> w, float eps, std::span<float> out)> rms_norm =
      reference::rms_norm;
  std::function<void(reference::ThreadPool&, const reference::ProductArgs&)> product = reference::product;
  std::function<void(std::span<float>)> quantise_activation = reference::fp8_round_trip;
  std::function<void(std::span<float>)> quantise_window_row = reference::fp8_round_trip;
  std::function<void(std::span<float>)> quantise_index = reference::fp4_e8m0_round_trip;
  std::function<void(std::span<float>)> quantise_latent = reference::fp4_e4m3_round_trip;

  std::function<LayerState(const ModelConfig&, const LayerRole&)> new_state = attndiff::new_state;
  std::function<std::int64_t(std::int64_t position, std::int64_t window)> ring_slot = reference::ring_slot;
  std::function<std::int64_t(std::int64_t tokens, std::int64_t window)> first_kept_token = reference::first_kept_token;
  std::function<void(const CallShape&, std::int64_t window, std::int64_t t, std::span<std::int32_t>)> window_indices =
      reference::window_indices;

  std::function<void(std::span<const float> k, std::span<const float> g, std::int64_t ratio, std::span<float> out)>
      pool_group = reference::pool_group;
  std::function<std::int64_t(const LayerRole&, const CallShape&, std::int64_t g)> group_position =
      reference::group_position;
  std::function<std::int64_t(const LayerRole&, const CallShape&, std::int64_t t)> visible_positions =
      reference::visible_positions;

  std::function<void(const reference::IndexScoreArgs&)> index_scores = reference::index_scores;
  std::function<float(float projected, float c)> scaled_index_weight = reference::scaled_index_weight;
  std::function<void(std::span<const float> scores, std::int64_t visible, const ModelConfig&, std::span<std::uint8_t>)>
      candidate_mask_row = [](auto scores, auto visible, const auto& config, auto mask) {
        reference::candidate_mask_row(scores, visible, config, mask);
      };
  /// Whether an index source's own scores are cut to the candidate mask.
  std::function<bool(const LayerRole&)> applies_candidates = [](const LayerRole& role) { return role.uses_candidates; };
  std::function<void(std::span<const float> scores, std::int64_t visible, std::span<std::int32_t> picks)> select_row =
      [](auto scores, auto visible, auto picks) { reference::select_row(scores, visible, picks); };
  std::function<std::int32_t(std::int32_t pick, std::int64_t offset)> offset_pick = reference::offset_pick;

  std::function<void(const reference::SparseAttentionArgs&)> sparse_attention = reference::sparse_attention;
};

}  // namespace attndiff::deepseek_v41
