#include "reference/deepseek_v41/bounds.h"

#include <algorithm>

#include "reference/deepseek_v41/bound_parts.h"

namespace attndiff::deepseek_v41 {

std::optional<StageSlack> stage_slack(int stage, const BoundInputs& in) {
  const ModelConfig& c = in.config;
  switch (static_cast<StageId>(stage)) {
    case kQr:
      return moved_by_entries(in, kQr, qr_slack(in));
    case kQ:
      return moved_by_entries(in, kQ, rotated_query_slack(in, kQ, "wq_b", c.n_heads, c.head_dim));
    case kKvPre:
      return moved_by_entries(in, kKvPre, kv_pre_slack(in));
    case kCompState:
      return StageSlack{.values = comp_state_slack(in)};
    case kLatent:
      return moved_by_entries(in, kLatent, latent_slack(in));
    case kIndexKPre:
      return moved_by_entries(in, kIndexKPre, index_k_pre_slack(in));
    case kIndexQPre:
      return moved_by_entries(in, kIndexQPre,
                              rotated_query_slack(in, kIndexQPre, "idx_wq_b", c.index_heads, c.index_head_dim));
    case kIndexW:
      return moved_by_entries(in, kIndexW, index_w_slack(in));
    case kIndexScore:
      return moved_by_entries(in, kIndexScore, index_score_slack(in));
    case kCompressPre:
      return StageSlack{.values = compress_pre_slack(in)};
    case kLse:
      return StageSlack{.values = lse_slack(in)};
    case kO:
      return StageSlack{.values = attention_slack(in)};
    case kOg:
      return og_slack(in);
    case kOut:
      return StageSlack{.values = out_slack(in)};
    case kKv:
    case kRing:
    case kIndexK:
    case kIndexQ:
    case kCandidates:
    case kSelection:
    case kCompressKv:
    case kRows:
    case kIdx:
    case kStageCount:
      break;
  }
  return std::nullopt;
}

std::int64_t stage_terms(int stage, const ModelConfig& c, const LayerRole& role, const CallShape& call) {
  switch (stage) {
    case kQr:
    case kKvPre:
    case kCompState:
    case kLatent:
    case kIndexW:
      return c.dim;
    case kQ:
    case kIndexQPre:
      return c.q_rank;
    case kIndexKPre:
    case kLse:
      return c.head_dim;
    case kIndexScore:
      return std::max(c.index_heads, c.index_head_dim);
    case kO:
      return std::max(c.head_dim, window_columns(c, call) + selection_columns(c, role, call));
    case kOg:
      return c.n_heads / c.groups * c.head_dim;
    case kOut:
      return c.groups * c.o_rank;
    default:
      return 0;
  }
}

}  // namespace attndiff::deepseek_v41
