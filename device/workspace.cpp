#include "device/workspace.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "reference/contract/bfloat16.h"

namespace attndiff::device {
namespace {

std::size_t bf16_bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(Bf16); }
std::size_t f32_bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

/// Scores of one index source: prefill sees at most max_tokens / ratio positions from each of max_tokens queries,
/// decode the whole sequence's from one.
std::int64_t score_count(const ModelConfig& c, const LayerRole& role) {
  return std::max(c.max_tokens * (c.max_tokens / role.ratio), c.max_seq / role.ratio);
}

}  // namespace

std::int64_t padded_selection_columns(const ModelConfig& config, const LayerRole& role) noexcept {
  return role.ratio == 0 ? 0 : std::min(config.index_topk, config.max_seq / role.ratio);
}

std::int64_t most_columns(const ModelConfig& config, std::span<const LayerRole> layers) {
  std::int64_t picks = 0;
  for (const LayerRole& role : layers) {
    picks = std::max(picks, padded_selection_columns(config, role));
  }
  return config.window + picks;
}

WorkspaceSizes workspace_sizes(const ModelConfig& config, std::span<const LayerRole> layers) {
  const std::int64_t tokens = config.max_tokens;
  WorkspaceSizes s;
  s.x = tokens * config.dim;
  s.activation = tokens * std::max({config.dim, config.q_rank, config.groups * config.o_rank});
  s.qr = tokens * config.q_rank;
  s.q = tokens * config.n_heads * config.head_dim;
  s.kv = tokens * config.head_dim;
  s.idx = tokens * most_columns(config, layers);
  s.lse = tokens * config.n_heads;
  s.og = tokens * config.groups * config.o_rank;
  s.out = tokens * config.dim;
  for (const LayerRole& role : layers) {
    if (role.is_kv_source) {
      // A decode call completes one group at most, a prefill call tokens / ratio.
      const std::int64_t groups = std::max<std::int64_t>(1, tokens / role.ratio);
      s.latent = std::max(s.latent, groups * config.head_dim);
      s.members = role.ratio > 1 ? tokens * config.head_dim : s.members;
      s.index_k = role.is_index_source ? std::max(s.index_k, groups * config.index_head_dim) : s.index_k;
    }
    if (role.is_index_source) {
      s.index_q = tokens * config.index_heads * config.index_head_dim;
      s.index_w = tokens * config.index_heads;
      s.scores = std::max(s.scores, score_count(config, role));
    }
  }
  return s;
}

Workspace::Workspace(const WorkspaceSizes& s)
    : x(bf16_bytes(s.x), "workspace x"),
      activation(bf16_bytes(s.activation), "workspace activation"),
      qr(bf16_bytes(s.qr), "workspace qr"),
      q(bf16_bytes(s.q), "workspace q"),
      kv(bf16_bytes(s.kv), "workspace kv"),
      member_k(f32_bytes(s.members), "workspace compressor k"),
      member_g(f32_bytes(s.members), "workspace compressor g"),
      latent(bf16_bytes(s.latent), "workspace latent"),
      index_k(bf16_bytes(s.index_k), "workspace index_k"),
      index_q(bf16_bytes(s.index_q), "workspace index_q"),
      index_w(bf16_bytes(s.index_w), "workspace index_w"),
      scores(bf16_bytes(s.scores), "workspace index_score"),
      idx(static_cast<std::size_t>(s.idx) * sizeof(std::int32_t), "workspace idx"),
      lse(f32_bytes(s.lse), "workspace lse"),
      o(bf16_bytes(s.q), "workspace o"),
      o_rotated(bf16_bytes(s.q), "workspace rotated o"),
      og(bf16_bytes(s.og), "workspace og"),
      out(bf16_bytes(s.out), "workspace out"),
      host_scores(bf16_bytes(s.scores), "page-locked index_score") {}

Workspace::Workspace(const ModelConfig& config, std::span<const LayerRole> layers)
    : Workspace(workspace_sizes(config, layers)) {}

void Workspace::poison(cudaStream_t stream) {
  for (const DeviceBuffer* buffer : {&x, &activation, &qr, &q, &kv, &member_k, &member_g, &latent, &index_k, &index_q,
                                     &index_w, &scores, &idx, &lse, &o, &o_rotated, &og, &out}) {
    kernels::launch_poison(buffer->data(), buffer->bytes(), stream);
  }
}

}  // namespace attndiff::device
