#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/deepseek_v41/bounds.h"
#include "reference/rotary.h"

namespace attndiff::deepseek_v41 {

/// A float32 value with how far a correct implementation's may be from it.
struct Bounded {
  Tensor value;  ///< f32
  Tensor slack;  ///< f32, same shape
};

/// How far bf16(v + e) can be from bf16(v) for |e| <= slack: 0 unless a rounding boundary lies within the slack.
[[nodiscard]] float rounding_spread(float v, float slack) noexcept;

/// The slack of a sum of `terms` products.
[[nodiscard]] float sum_slack(std::int64_t terms, float norm_w, float norm_x) noexcept;

[[nodiscard]] float norm2(std::span<const float> v) noexcept;

/// x . W^T of `rows` weight rows from `row_begin` (x: f32 [tokens, K], given), with its slack. An e4m3 weight's
/// activation is quantised first, which is exact.
[[nodiscard]] Bounded bounded_product(const BoundInputs& in, const Tensor& x, const char* weight,
                                      std::int64_t row_begin, std::int64_t rows);
[[nodiscard]] Bounded bounded_product(const BoundInputs& in, const Tensor& x, const char* weight);
/// Only the slack, where the value is known already.
[[nodiscard]] Tensor product_slack(const BoundInputs& in, const Tensor& x, const char* weight);

/// Rounds to bf16: the value, and the spread as its slack.
[[nodiscard]] Bounded rounded_bf16(Bounded b);

/// rmsnorm of rows already rounded to bf16, with the slack of what it makes of theirs.
[[nodiscard]] Bounded bounded_norm(const BoundInputs& in, Bounded rows, const char* weight);

/// Slack of rows [count, width] after rotation: `before` is the row tail (rope_dim wide, rounded to bf16, with its
/// spread); entries outside the tail keep `slack`, whose tail is overwritten. Row i turns by positions[i / per].
void rotate_slack(const BoundInputs& in, const Bounded& tails, std::span<const std::int64_t> positions,
                  std::int64_t per, Tensor& slack);

/// The last rope_dim entries of each row.
[[nodiscard]] Tensor row_tails(const Tensor& rows, std::int64_t width, std::int64_t tail);

/// Phases of one position for the role's frequencies.
[[nodiscard]] reference::RotaryPhase phase_at(const BoundInputs& in, std::int64_t position);
[[nodiscard]] std::vector<std::int64_t> call_positions(const CallShape& call);
[[nodiscard]] std::vector<std::int64_t> group_positions(const LayerRole& role, const CallShape& call);

/// The stages by what they are made of.
[[nodiscard]] Tensor qr_slack(const BoundInputs& in);
[[nodiscard]] Tensor rotated_query_slack(const BoundInputs& in, StageId stage, const char* weight, std::int64_t heads,
                                         std::int64_t width);
[[nodiscard]] Tensor kv_pre_slack(const BoundInputs& in);
[[nodiscard]] Tensor comp_state_slack(const BoundInputs& in);
[[nodiscard]] Tensor latent_slack(const BoundInputs& in);
[[nodiscard]] Tensor index_k_pre_slack(const BoundInputs& in);
[[nodiscard]] Tensor compress_pre_slack(const BoundInputs& in);
[[nodiscard]] Tensor index_w_slack(const BoundInputs& in);
[[nodiscard]] Tensor index_score_slack(const BoundInputs& in);
/// o (bf16 stage) or lse, whose slack is [tokens, n_heads].
[[nodiscard]] Tensor attention_slack(const BoundInputs& in, StageId stage);
[[nodiscard]] Tensor og_slack(const BoundInputs& in);
[[nodiscard]] Tensor out_slack(const BoundInputs& in);

}  // namespace attndiff::deepseek_v41
