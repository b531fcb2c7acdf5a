#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"
#include "reference/compressor.h"

namespace attndiff::mutants {
namespace {

using deepseek_v41::Steps;
using Floats = std::span<const float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void empty_group(const LayerCall& call, TensorView& state) {
  if (call.shape.prefill()) {
    const auto both = elements<float>(state);
    std::fill(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2), 0.0F);
    std::fill(both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2), both.end(), -kInfinity);
  }
}

/// What the last sequence left in the partial group: any finite values will do.
LayerState left_by_the_last_sequence(const ModelConfig& config, const LayerRole& role) {
  LayerState state = new_state(config, role);
  if (state.comp_state.defined()) {
    float value = 0;
    for (float& v : state.comp_state.as<float>()) {
      value = value > 1 ? -1 : value + 0x1p-5F;
      v = value;
    }
  }
  return state;
}

void zero_state(const LayerRole& role, InitialLayerState& state) {
  if (role.is_kv_source && role.ratio > 1) {
    for (Tensor* part : {&state.comp_kv_state, &state.comp_score_state}) {
      std::fill(part->as<float>().begin(), part->as<float>().end(), 0.0F);
    }
  }
}

void mean_pool(Floats k, Floats /*g*/, std::int64_t ratio, std::span<float> out) {
  const std::vector<float> equal(k.size(), 0.0F);
  reference::pool_group(k, equal, ratio, out);
}

void last_member_missing(Floats k, Floats g, std::int64_t ratio, std::span<float> out) {
  std::vector<float> scores(g.begin(), g.end());
  std::fill(scores.end() - static_cast<std::ptrdiff_t>(out.size()), scores.end(), -kInfinity);
  reference::pool_group(k, scores, ratio, out);
}

std::int64_t group_index(const LayerRole& role, const CallShape& call, std::int64_t g) {
  return reference::group_position(role, call, g) / role.ratio;
}

std::int64_t last_token(const LayerRole& role, const CallShape& call, std::int64_t g) {
  return reference::group_position(role, call, g) + role.ratio - 1;
}

std::int64_t in_progress_visible(const LayerRole& role, const CallShape& call, std::int64_t t) {
  return call.prefill() ? (t + role.ratio) / role.ratio : reference::visible_positions(role, call, t);
}

std::int64_t newest_group_hidden(const LayerRole& role, const CallShape& call, std::int64_t t) {
  return std::max<std::int64_t>(0, reference::visible_positions(role, call, t) - 1);
}

}  // namespace

std::vector<Mutant> compressor_mutants() {
  return {
      fault("compressor-tail-dropped", "a prefill's left-over tokens are not handed to decode", {"comp_state", "micro"},
            with_stage("comp_state", empty_group)),
      fault("compressor-tail-dropped-ratio-4", "the same with several left-over tokens", {"comp_state", "micro-ratio4"},
            with_stage("comp_state", empty_group)),
      step_fault("compressor-state-not-reset", "a sequence starts with the last one's partial group",
                 {"comp_state", "micro"}, &Steps::new_state, left_by_the_last_sequence),
      fault("resume-with-zero-state", "a sequence resumed inside a group starts with a partial group of zeros",
            {"comp_state", "tiny-resume"}, with_start({.state = zero_state})),
      step_fault("group-mean", "a group is averaged instead of pooled by its scores", {"latent", "micro"},
                 &Steps::pool_group, mean_pool),
      step_fault("group-member-missing", "a group's last member is left out", {"latent", "micro-ratio4"},
                 &Steps::pool_group, last_member_missing),
      step_fault("rotary-at-the-group-index", "compressed rows turn by their group's number, not its position",
                 {"index_k_pre", "micro"}, &Steps::group_position, group_index),
      step_fault("rotary-at-the-last-token", "compressed rows turn by their group's last position",
                 {"index_k_pre", "micro"}, &Steps::group_position, last_token),
      step_fault("in-progress-group-visible", "a prefill's tokens see the group they are still part of",
                 {"selection", "micro"}, &Steps::visible_positions, in_progress_visible),
      step_fault("newest-group-hidden", "no token sees the newest complete group", {"selection", "micro"},
                 &Steps::visible_positions, newest_group_hidden),
  };
}

}  // namespace attndiff::mutants
