#include <algorithm>
#include <limits>
#include <utility>

#include "reference/contract/error.h"
#include "reference/deepseek_v41/call.h"

namespace attndiff::deepseek_v41 {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// Makes this call's index keys and publishes the cache as the rule of the configuration says.
void write_index_keys(Call& call, const Latents& latents) {
  const ModelConfig& c = call.config();
  if (latents.latent.value.defined()) {
    Rounded pre = call.rotated(call.norm(call.product(to_f32(latents.latent.value), "idx_wk"), "idx_k_norm"),
                               latents.positions, 1);
    call.publish(kIndexKPre, pre);
    Tensor keys = call.quantised(pre.value, c.index_head_dim, call.steps().quantise_index);
    call.publish(kIndexK, keys);
    call.state().index_keys->write(call.shape().start_pos / call.role().ratio, std::as_const(keys).as<Bf16>());
  }
  if (latents.latent.value.defined() || c.index_keys == IndexKeyRule::own) {
    call.slots().index_k = {.value = call.state().index_keys, .owner = call.role().layer_id};
  }
}

/// The first `len` rows of the slot index_k as float32.
Tensor slot_keys(const Call& call, std::int64_t len) {
  const auto& slot = call.slots().index_k;
  if (!slot) {
    throw call.refusal("slot index_k", "needed, but no layer has written it");
  }
  const RowCache& cache = *slot->value;
  const std::int64_t width = call.config().index_head_dim;
  if (cache.width() != width) {
    throw call.refusal("slot index_k", "keys of the wrong width", std::to_string(width), std::to_string(cache.width()));
  }
  if (cache.capacity() < len) {
    throw call.refusal("slot index_k", "too few rows, owned by layer " + std::to_string(slot->owner),
                       std::to_string(len), std::to_string(cache.capacity()));
  }
  Tensor keys(DType::bf16, {len, width});
  cache.read(len, keys.as<Bf16>());
  return to_f32(keys);
}

struct IndexQueries {
  Tensor q;  ///< bf16 [tokens, index_heads, index_head_dim]
  Tensor w;  ///< bf16 [tokens, index_heads]
};

IndexQueries make_index_queries(Call& call, const Tensor& qr) {
  const ModelConfig& c = call.config();
  const std::int64_t tokens = call.shape().tokens;
  Tensor projected = call.product(to_f32(qr), "idx_wq_b");
  Rounded pre = call.rotated(std::move(projected).reshaped({tokens, c.index_heads, c.index_head_dim}),
                             call.token_positions(), c.index_heads);
  call.publish(kIndexQPre, pre);
  Tensor q = call.quantised(pre.value, c.index_head_dim, call.steps().quantise_index);
  call.publish(kIndexQ, q);

  Tensor w_f = call.product(call.x(), "idx_weights_proj");
  const float scale = reference::index_weight_scale(c);
  for (float& w : w_f.as<float>()) {
    w = call.steps().scaled_index_weight(w, scale);
  }
  Rounded w = rounded(std::move(w_f));
  call.publish(kIndexW, w);
  return {.q = std::move(q), .w = std::move(w.value)};
}

Rounded make_scores(Call& call, const IndexQueries& queries, std::int64_t len) {
  const ModelConfig& c = call.config();
  const std::int64_t tokens = call.shape().tokens;
  const Tensor keys = slot_keys(call, len);
  const Tensor q = to_f32(queries.q);
  const Tensor w = to_f32(queries.w);
  Tensor scores(DType::f32, {tokens, len});
  const auto heads = static_cast<std::size_t>(c.index_heads);
  const auto q_size = heads * static_cast<std::size_t>(c.index_head_dim);
  const auto columns = static_cast<std::size_t>(len);
  call.pool().parallel_for(tokens, [&](std::int64_t t) {
    const auto at = static_cast<std::size_t>(t);
    call.steps().index_scores({.q = q.as<float>().subspan(at * q_size, q_size),
                               .keys = keys.as<float>(),
                               .w = w.as<float>().subspan(at * heads, heads),
                               .out = scores.as<float>().subspan(at * columns, columns)});
  });
  return rounded(std::move(scores));
}

/// Scores with -inf at positions that query `t` may not see.
Tensor visible_scores(const Call& call, const Tensor& scores) {
  Tensor masked = to_f32(scores);
  const auto values = masked.as<float>();
  const auto len = static_cast<std::size_t>(scores.shape()[1]);
  for (std::int64_t t = 0; t < call.shape().tokens; ++t) {
    const auto visible = static_cast<std::size_t>(
        std::min<std::int64_t>(call.steps().visible_positions(call.role(), call.shape(), t), scores.shape()[1]));
    const auto row = values.subspan(static_cast<std::size_t>(t) * len, len);
    std::fill(row.begin() + static_cast<std::ptrdiff_t>(visible), row.end(), kMasked);
  }
  return masked;
}

void publish_candidates(Call& call, const Tensor& masked) {
  const std::int64_t len = masked.shape()[1];
  Tensor mask(DType::u8, masked.shape());
  const auto width = static_cast<std::size_t>(len);
  call.pool().parallel_for(call.shape().tokens, [&](std::int64_t t) {
    const auto at = static_cast<std::size_t>(t) * width;
    call.steps().candidate_mask_row(masked.as<float>().subspan(at, width),
                                    call.steps().visible_positions(call.role(), call.shape(), t), call.config(),
                                    mask.as<std::uint8_t>().subspan(at, width));
  });
  call.publish(kCandidates, mask);
  call.slots().candidates = {.value = std::move(mask), .owner = call.role().layer_id};
}

void apply_candidates(const Call& call, Tensor& masked) {
  const auto& slot = call.slots().candidates;
  if (!slot) {
    throw call.refusal("slot candidates", "needed, but no layer has written it");
  }
  if (!(slot->value.shape() == masked.shape())) {
    throw call.refusal("slot candidates", "a mask of the wrong shape, owned by layer " + std::to_string(slot->owner),
                       masked.shape().text(), slot->value.shape().text());
  }
  const auto mask = slot->value.as<std::uint8_t>();
  const auto values = masked.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = mask[i] != 0 ? values[i] : kMasked;
  }
}

void publish_selection(Call& call, const Tensor& masked) {
  const std::int64_t k = selection_columns(call.config(), call.role(), call.shape());
  const auto len = static_cast<std::size_t>(compressed_length(call.role(), call.shape()));
  Tensor selection(DType::i32, {call.shape().tokens, k});
  if (k > 0) {
    call.pool().parallel_for(call.shape().tokens, [&](std::int64_t t) {
      const auto columns = static_cast<std::size_t>(k);
      call.steps().select_row(masked.as<float>().subspan(static_cast<std::size_t>(t) * len, len),
                              call.steps().visible_positions(call.role(), call.shape(), t),
                              selection.as<std::int32_t>().subspan(static_cast<std::size_t>(t) * columns, columns));
    });
  }
  call.publish(kSelection, selection);
  call.slots().selection = {.value = std::move(selection), .owner = call.role().layer_id};
}

}  // namespace

void run_indexer(Call& call, const Tensor& qr, const Latents& latents) {
  const std::int64_t len = compressed_length(call.role(), call.shape());
  if (call.role().is_kv_source) {
    write_index_keys(call, latents);
  }
  if (len == 0) {
    publish_selection(call, Tensor{});
    return;
  }
  const IndexQueries queries = make_index_queries(call, qr);
  Rounded scores = make_scores(call, queries, len);
  call.publish(kIndexScore, scores);
  Tensor masked = visible_scores(call, scores.value);
  if (call.role().is_candidate_source) {
    publish_candidates(call, masked);
  }
  if (call.steps().applies_candidates(call.role())) {
    apply_candidates(call, masked);
  }
  publish_selection(call, masked);
}

}  // namespace attndiff::deepseek_v41
