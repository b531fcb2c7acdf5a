#include "reference/deepseek_v41/stages.h"

#include <algorithm>
#include <array>

#include "reference/deepseek_v41/bounds.h"

namespace attndiff::deepseek_v41 {
namespace {

using MaybeShape = std::optional<Shape>;

template <auto Member>
MaybeShape per_token(const ModelConfig& c, const LayerRole&, const CallShape& call) {
  return Shape{call.tokens, c.*Member};
}

MaybeShape per_head(const ModelConfig& c, const LayerRole&, const CallShape& call) {
  return Shape{call.tokens, c.n_heads, c.head_dim};
}

MaybeShape ring(const ModelConfig& c, const LayerRole&, const CallShape&) { return Shape{c.window, c.head_dim}; }

MaybeShape comp_state(const ModelConfig& c, const LayerRole& r, const CallShape&) {
  if (!r.is_kv_source || r.ratio < 2) {
    return std::nullopt;
  }
  return Shape{2, r.ratio, c.head_dim};
}

MaybeShape groups_by(std::int64_t width, const LayerRole& r, const CallShape& call) {
  const std::int64_t groups = groups_completed(r, call);
  if (groups == 0) {
    return std::nullopt;
  }
  return Shape{groups, width};
}

MaybeShape latent(const ModelConfig& c, const LayerRole& r, const CallShape& call) {
  return groups_by(c.head_dim, r, call);
}

MaybeShape index_key(const ModelConfig& c, const LayerRole& r, const CallShape& call) {
  return r.is_index_source ? groups_by(c.index_head_dim, r, call) : std::nullopt;
}

bool indexes(const LayerRole& r, const CallShape& call) { return r.is_index_source && compressed_length(r, call) > 0; }

MaybeShape index_query(const ModelConfig& c, const LayerRole& r, const CallShape& call) {
  if (!indexes(r, call)) {
    return std::nullopt;
  }
  return Shape{call.tokens, c.index_heads, c.index_head_dim};
}

MaybeShape index_weight(const ModelConfig& c, const LayerRole& r, const CallShape& call) {
  if (!indexes(r, call)) {
    return std::nullopt;
  }
  return Shape{call.tokens, c.index_heads};
}

MaybeShape index_score(const ModelConfig&, const LayerRole& r, const CallShape& call) {
  if (!indexes(r, call)) {
    return std::nullopt;
  }
  return Shape{call.tokens, compressed_length(r, call)};
}

MaybeShape candidates(const ModelConfig& c, const LayerRole& r, const CallShape& call) {
  return r.is_candidate_source ? index_score(c, r, call) : std::nullopt;
}

MaybeShape selection(const ModelConfig& c, const LayerRole& r, const CallShape& call) {
  if (!r.is_index_source) {
    return std::nullopt;
  }
  return Shape{call.tokens, selection_columns(c, r, call)};
}

MaybeShape rows(const ModelConfig& c, const LayerRole& r, const CallShape& call) {
  return Shape{attended_window_rows(c, call) + compressed_length(r, call), c.head_dim};
}

MaybeShape idx(const ModelConfig& c, const LayerRole& r, const CallShape& call) {
  return Shape{call.tokens, window_columns(c, call) + selection_columns(c, r, call)};
}

MaybeShape og(const ModelConfig& c, const LayerRole&, const CallShape& call) {
  return Shape{call.tokens, c.groups * c.o_rank};
}

using Kind = StageKind;
constexpr bool kFollowed = true;
constexpr bool kOwn = false;
constexpr bool kSummed = true;
constexpr bool kDirect = false;

std::array<StageInfo, kStageCount> make_table() {
  std::array<StageInfo, kStageCount> stages{{
      {kQr, "qr", Kind::real, DType::bf16, Rounding::bf16, {}, kOwn, kSummed, per_token<&ModelConfig::q_rank>},
      {kQ, "q", Kind::real, DType::bf16, Rounding::bf16, {kQr}, kOwn, kSummed, per_head},
      {kKvPre, "kv_pre", Kind::real, DType::bf16, Rounding::bf16, {}, kOwn, kSummed, per_token<&ModelConfig::head_dim>},
      {kKv,
       "kv",
       Kind::code,
       DType::bf16,
       Rounding::fp8,
       {kKvPre},
       kFollowed,
       kDirect,
       per_token<&ModelConfig::head_dim>},
      {kRing, "ring", Kind::state, DType::bf16, Rounding::fp8, {kKv}, kOwn, kDirect, ring},
      {kCompState, "comp_state", Kind::state, DType::f32, Rounding::f32, {}, kOwn, kSummed, comp_state},
      {kLatent, "latent", Kind::real, DType::bf16, Rounding::bf16, {}, kOwn, kSummed, latent},
      {kIndexKPre, "index_k_pre", Kind::real, DType::bf16, Rounding::bf16, {kLatent}, kOwn, kSummed, index_key},
      {kIndexK, "index_k", Kind::code, DType::bf16, Rounding::fp4_e8m0, {kIndexKPre}, kFollowed, kDirect, index_key},
      {kIndexQPre, "index_q_pre", Kind::real, DType::bf16, Rounding::bf16, {kQr}, kOwn, kSummed, index_query},
      {kIndexQ, "index_q", Kind::code, DType::bf16, Rounding::fp4_e8m0, {kIndexQPre}, kFollowed, kDirect, index_query},
      {kIndexW, "index_w", Kind::real, DType::bf16, Rounding::bf16, {}, kFollowed, kSummed, index_weight},
      {kIndexScore,
       "index_score",
       Kind::real,
       DType::bf16,
       Rounding::bf16,
       {kIndexK, kIndexQ, kIndexW},
       kOwn,
       kSummed,
       index_score},
      {kCandidates, "candidates", Kind::mask, DType::u8, Rounding::none, {kIndexScore}, kFollowed, kDirect, candidates},
      {kSelection, "selection", Kind::index, DType::i32, Rounding::none, {kIndexScore}, kFollowed, kDirect, selection},
      {kCompressPre, "compress_pre", Kind::real, DType::bf16, Rounding::bf16, {kLatent}, kOwn, kDirect, latent},
      {kCompressKv,
       "compress_kv",
       Kind::code,
       DType::bf16,
       Rounding::fp4_e4m3,
       {kCompressPre},
       kFollowed,
       kDirect,
       latent},
      {kRows, "rows", Kind::code, DType::bf16, Rounding::mixed, {kKv, kRing, kCompressKv}, kFollowed, kDirect, rows},
      {kIdx, "idx", Kind::index, DType::i32, Rounding::none, {kSelection}, kFollowed, kDirect, idx},
      {kLse,
       "lse",
       Kind::real,
       DType::f32,
       Rounding::f32,
       {kQ, kRows, kIdx},
       kOwn,
       kSummed,
       per_token<&ModelConfig::n_heads>},
      {kO, "o", Kind::real, DType::bf16, Rounding::bf16, {kQ, kRows, kIdx}, kOwn, kSummed, per_head},
      {kOg, "og", Kind::real, DType::bf16, Rounding::bf16, {kO}, kOwn, kSummed, og},
      {kOut, "out", Kind::real, DType::bf16, Rounding::bf16, {kOg}, kOwn, kSummed, per_token<&ModelConfig::dim>},
  }};
  for (const StageId id : {kRing, kCompState, kSelection, kOut}) {
    stages[id].required = true;
  }
  stages[kO].weighted_by_softmax = true;
  stages[kQr].activates = {"wq_b", "idx_wq_b"};
  stages[kOg].activates = {"wo_b"};
  return stages;
}

const std::array<StageInfo, kStageCount>& table() {
  static const std::array<StageInfo, kStageCount> stages = make_table();
  return stages;
}

void add_indexer(const ModelConfig& c, const LayerRole& r, std::vector<WeightSpec>& specs) {
  specs.push_back({"idx_wq_b", {c.index_heads * c.index_head_dim, c.q_rank}, DType::bf16, true});
  specs.push_back({"idx_weights_proj", {c.index_heads, c.dim}});
  if (r.is_kv_source) {
    specs.push_back({"idx_wk", {c.index_head_dim, c.head_dim}});
    specs.push_back({"idx_k_norm", {c.index_head_dim}, DType::f32});
  }
}

std::vector<WeightSpec> weights(const ModelConfig& c, const LayerRole& r) {
  std::vector<WeightSpec> specs{
      {"sink", {c.n_heads}, DType::f32},
      {"wq_a", {c.q_rank, c.dim}, DType::bf16, true},
      {"q_norm", {c.q_rank}, DType::f32},
      {"wq_b", {c.n_heads * c.head_dim, c.q_rank}, DType::bf16, true},
      {"wkv", {c.head_dim, c.dim}, DType::bf16, true},
      {"kv_norm", {c.head_dim}, DType::f32},
      {"wo_a", {c.groups * c.o_rank, c.n_heads * c.head_dim / c.groups}},
      {"wo_b", {c.dim, c.groups * c.o_rank}, DType::bf16, true},
  };
  if (r.is_kv_source) {
    specs.push_back({"comp_wkv", {c.head_dim, c.dim}, r.ratio > 1 ? DType::f32 : DType::bf16});
    if (r.ratio > 1) {
      specs.push_back({"comp_wgate", {c.head_dim, c.dim}, DType::f32});
    }
    specs.push_back({"comp_norm", {c.head_dim}, DType::f32});
  }
  if (r.is_index_source) {
    add_indexer(c, r, specs);
  }
  return specs;
}

}  // namespace

const ModelFamily& family() {
  static const ModelFamily only{
      .name = "deepseek-v41", .stages = table(), .weights = weights, .slack = stage_slack, .terms = stage_terms};
  return only;
}

std::int64_t compressed_length(const LayerRole& role, const CallShape& call) noexcept {
  return role.ratio == 0 ? 0 : (call.start_pos + call.tokens) / role.ratio;
}

std::int64_t groups_completed(const LayerRole& role, const CallShape& call) noexcept {
  if (!role.is_kv_source || role.ratio == 0) {
    return 0;
  }
  return compressed_length(role, call) - call.start_pos / role.ratio;
}

std::int64_t attended_window_rows(const ModelConfig& config, const CallShape& call) noexcept {
  return call.prefill() ? call.tokens : config.window;
}

std::int64_t window_columns(const ModelConfig& config, const CallShape& call) noexcept {
  return call.prefill() ? std::min(call.tokens, config.window) : config.window;
}

std::int64_t selection_columns(const ModelConfig& config, const LayerRole& role, const CallShape& call) noexcept {
  return std::min(config.index_topk, compressed_length(role, call));
}

}  // namespace attndiff::deepseek_v41
