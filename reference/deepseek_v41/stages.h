#pragma once

#include "reference/contract/stage.h"

namespace attndiff::deepseek_v41 {

/// The stages of a layer in the order they are computed; the values are ids in the family's table.
enum StageId : int {
  kQr,           ///< bf16 [T, q_rank]
  kQ,            ///< bf16 [T, n_heads, head_dim]
  kKvPre,        ///< bf16 [T, head_dim], rotated, before fp8
  kKv,           ///< bf16 [T, head_dim], on the fp8 grid
  kRing,         ///< bf16 [window, head_dim], after the call
  kCompState,    ///< f32 [2, ratio, head_dim], after the call: partial group's k, then g
  kLatent,       ///< bf16 [G, head_dim], G groups completed by this call
  kIndexKPre,    ///< bf16 [G, index_head_dim]
  kIndexK,       ///< bf16 [G, index_head_dim], on the fp4_e8m0 grid
  kIndexQPre,    ///< bf16 [T, index_heads, index_head_dim]
  kIndexQ,       ///< bf16 [T, index_heads, index_head_dim], on the fp4_e8m0 grid
  kIndexW,       ///< bf16 [T, index_heads]
  kIndexScore,   ///< bf16 [T, len], before any mask
  kCandidates,   ///< u8 [T, len]
  kSelection,    ///< i32 [T, min(index_topk, len)], ascending, -1 absent, without offset
  kCompressPre,  ///< bf16 [G, head_dim], rotated latent
  kCompressKv,   ///< bf16 [G, head_dim], on the fp4_e4m3 grid
  kRows,         ///< bf16 [attended window rows + len, head_dim]
  kIdx,          ///< i32 [T, window columns + selection columns]
  kLse,          ///< f32 [T, n_heads]
  kO,            ///< bf16 [T, n_heads, head_dim], before the inverse rotation
  kOg,           ///< bf16 [T, groups * o_rank]
  kOut,          ///< bf16 [T, dim]
  kStageCount,
};

/// The family `deepseek-v41`.
[[nodiscard]] const ModelFamily& family();

/// Compressed positions that exist after a call: (start_pos + tokens) / ratio; 0 at ratio 0.
[[nodiscard]] std::int64_t compressed_length(const LayerRole& role, const CallShape& call) noexcept;

/// Groups that a call completes on a kv source.
[[nodiscard]] std::int64_t groups_completed(const LayerRole& role, const CallShape& call) noexcept;

/// Window rows a call attends: its own tokens in prefill, the whole ring in decode.
[[nodiscard]] std::int64_t attended_window_rows(const ModelConfig& config, const CallShape& call) noexcept;

/// Columns of `idx` for the window: min(tokens, window) in prefill, window in decode.
[[nodiscard]] std::int64_t window_columns(const ModelConfig& config, const CallShape& call) noexcept;

/// Columns of `idx` for the selection: min(index_topk, len), 0 at ratio 0.
[[nodiscard]] std::int64_t selection_columns(const ModelConfig& config, const LayerRole& role,
                                             const CallShape& call) noexcept;

}  // namespace attndiff::deepseek_v41
