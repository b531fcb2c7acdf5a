#include <span>
#include <utility>

#include "device/layer_run.h"
#include "device/queue.h"
#include "device/refusals.h"
#include "device/selection.h"
#include "reference/deepseek_v41/stages.h"
#include "reference/indexer.h"

namespace attndiff::device {

using namespace deepseek_v41;  // NOLINT(google-build-using-namespace): the stages' names

void LayerRun::make_members() {
  runtime_.launches().compressor_product({.x = w_.x.as<Bf16>(),
                                          .wkv = weights_.f32("comp_wkv"),
                                          .wgate = weights_.f32("comp_wgate"),
                                          .k = w_.member_k.as<float>(),
                                          .g = w_.member_g.as<float>(),
                                          .tokens = shape_.tokens,
                                          .dim = config_.dim,
                                          .width = config_.head_dim},
                                         runtime_.stream());
  const auto* k = w_.member_k.as<float>();
  const auto* g = w_.member_g.as<float>();
  if (!shape_.prefill()) {
    runtime_.launches().partial_write({.k = k,
                                       .g = g,
                                       .state = state_.partial(),
                                       .step = runtime_.step(),
                                       .ratio = role_.ratio,
                                       .width = config_.head_dim},
                                      runtime_.stream());
    return;
  }
  const std::int64_t pooled = groups_ * role_.ratio;
  const auto left = static_cast<std::size_t>((shape_.tokens - pooled) * config_.head_dim) * sizeof(float);
  const std::int64_t at = pooled * config_.head_dim;
  copy_on_device(state_.partial(), k + at, left, runtime_.stream());
  copy_on_device(state_.partial() + role_.ratio * config_.head_dim, g + at, left, runtime_.stream());
}

void LayerRun::pool_partial() {
  const std::int64_t half = role_.ratio * config_.head_dim;
  runtime_.launches().pool({.k = shape_.prefill() ? w_.member_k.as<float>() : state_.partial(),
                            .g = shape_.prefill() ? w_.member_g.as<float>() : state_.partial() + half,
                            .pooled = w_.latent.as<Bf16>(),
                            .groups = groups_,
                            .ratio = role_.ratio,
                            .width = config_.head_dim},
                           runtime_.stream());
}

void LayerRun::compress() {
  auto* latent = w_.latent.as<Bf16>();
  if (role_.ratio == 1) {
    linear(w_.x.as<Bf16>(), "comp_wkv", latent, shape_.tokens);
  } else {
    make_members();
    tap_.offer(kCompState, state_.partial());
    pool_partial();
  }
  if (groups_ > 0) {
    norm(latent, groups_, "comp_norm");
    tap_.offer(kLatent, latent);
  }
}

void LayerRun::rotate_groups(Bf16* rows, std::int64_t width) {
  const RotaryTable& table = runtime_.rotary(role_.ratio);
  runtime_.launches().rotary({.from = rows,
                              .to = rows,
                              .cos = table.cos(),
                              .sin = table.sin(),
                              .first = &runtime_.step()->group_position,
                              .stride = role_.ratio,
                              .rows = groups_,
                              .rows_per_position = 1,
                              .width = width,
                              .rope_dim = config_.rope_dim,
                              .direction = kernels::RotaryDirection::forward},
                             runtime_.stream());
}

void LayerRun::make_index_keys() {
  const std::shared_ptr<DeviceCache>& cache = state_.index_keys();
  if (groups_ > 0) {
    auto* keys = w_.index_k.as<Bf16>();
    linear(w_.latent.as<Bf16>(), "idx_wk", keys, groups_);
    norm(keys, groups_, "idx_k_norm");
    rotate_groups(keys, config_.index_head_dim);
    tap_.offer(kIndexKPre, keys);
    quantise(keys, groups_ * config_.index_head_dim, kernels::RoundTrip::fp4_e8m0);
    tap_.offer(kIndexK, keys);
    copy_on_device(cache->row(shape_.start_pos / role_.ratio), keys, cache->bytes_of(groups_), runtime_.stream());
  }
  if (groups_ > 0 || config_.index_keys == IndexKeyRule::own) {
    sequence_.slots().index_k = {.value = cache, .owner = role_.layer_id};
  }
}

void LayerRun::make_index_queries() {
  auto* q = w_.index_q.as<Bf16>();
  const std::int64_t rows = shape_.tokens * config_.index_heads;
  linear(w_.qr.as<Bf16>(), "idx_wq_b", q, shape_.tokens);
  rotate(q, q, rows, config_.index_heads, config_.index_head_dim);
  tap_.offer(kIndexQPre, q);
  quantise(q, rows * config_.index_head_dim, kernels::RoundTrip::fp4_e8m0);
  tap_.offer(kIndexQ, q);
  auto* weights = w_.index_w.as<Bf16>();
  linear(w_.x.as<Bf16>(), "idx_weights_proj", weights, shape_.tokens);
  runtime_.launches().scale(
      {.x = weights, .y = weights, .count = rows, .scale = reference::index_weight_scale(config_)}, runtime_.stream());
  tap_.offer(kIndexW, weights);
}

void LayerRun::score_and_select() {
  auto* scores = w_.scores.as<Bf16>();
  runtime_.launches().index_scores({.q = w_.index_q.as<Bf16>(),
                                    .keys = sequence_.slots().index_k->value->row(0),
                                    .w = w_.index_w.as<Bf16>(),
                                    .scores = scores,
                                    .tokens = shape_.tokens,
                                    .length = length_,
                                    .heads = config_.index_heads,
                                    .head_dim = config_.index_head_dim},
                                   runtime_.stream());
  tap_.offer(kIndexScore, scores);
  const auto count = static_cast<std::size_t>(shape_.tokens * length_);
  runtime_.launches().download_scores(w_.host_scores.as<Bf16>(), scores, count * sizeof(Bf16), runtime_.stream());
  const ScoreRows rows{.config = config_,
                       .role = role_,
                       .call = shape_,
                       .scores = std::span<const Bf16>(w_.host_scores.as<Bf16>(), count),
                       .length = length_};
  if (role_.is_candidate_source) {
    publish_candidates(runtime_.launches().candidate_mask(rows, runtime_.pool()));
  }
  const Tensor* mask = role_.uses_candidates ? &sequence_.slots().candidates->value : nullptr;
  publish_selection(runtime_.launches().select_positions(rows, mask, runtime_.pool()));
}

void LayerRun::publish_candidates(Tensor mask) {
  if (tap_.wanted(kCandidates)) {
    void* shown = sequence_.scratch(kCandidates, mask.bytes()).data();
    copy_to_device(shown, mask.raw(), mask.bytes(), runtime_.stream());
    tap_.offer(kCandidates, shown);
    if (tap_.replaceable(kCandidates)) {
      mask = download(view(kCandidates, shown), runtime_.queue());
    }
  }
  sequence_.slots().candidates = {.value = std::move(mask), .owner = role_.layer_id};
}

void LayerRun::publish_selection(Tensor picks) {
  sequence_.publish_selection(std::move(picks), role_.layer_id);
  void* shown = sequence_.selection().picks.data();
  tap_.offer(kSelection, shown);
  if (tap_.replaceable(kSelection)) {
    Tensor replaced = download(view(kSelection, shown), runtime_.queue());
    check_entries(role_, "selection", std::as_const(replaced).as<std::int32_t>(), replaced.shape(), length_);
    sequence_.publish_selection(std::move(replaced), role_.layer_id);
  }
}

void LayerRun::store_latents() {
  const std::shared_ptr<DeviceCache>& cache = state_.latents();
  if (groups_ > 0) {
    auto* latent = w_.latent.as<Bf16>();
    rotate_groups(latent, config_.head_dim);
    tap_.offer(kCompressPre, latent);
    quantise(latent, groups_ * config_.head_dim, kernels::RoundTrip::fp4_e4m3);
    tap_.offer(kCompressKv, latent);
    copy_on_device(cache->row(shape_.start_pos / role_.ratio), latent, cache->bytes_of(groups_), runtime_.stream());
  }
  sequence_.slots().compress_kv = {.value = cache, .owner = role_.layer_id};
}

}  // namespace attndiff::device
