#pragma once

#include <cmath>
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

/// The slack of sums of `terms` products.
class SumSlack {
 public:
  explicit SumSlack(std::int64_t terms) noexcept
      : relative_(kSumFactor * std::sqrt(static_cast<float>(terms)) * kUnitRoundoff),
        underflow_(static_cast<float>(terms) * 0x1p-149F) {}

  [[nodiscard]] float operator()(float norm_w, float norm_x) const noexcept {
    return relative_ * norm_w * norm_x + underflow_;
  }

 private:
  float relative_;
  /// Below 2^-126 a product has no relative error but an absolute one, 2^-150, on either side; sums there are exact.
  float underflow_;
};

[[nodiscard]] float norm2(std::span<const float> v) noexcept;

/// float32 values of a bf16 tensor.
[[nodiscard]] Tensor floats_of(const BoundInputs& in, const Tensor& t);

/// x (bf16 [tokens, K], given) as the weight sees it, in float32: through the fp8 round trip, which is exact, before an
/// e4m3 weight.
[[nodiscard]] Tensor activation_for(const BoundInputs& in, const Tensor& x, const char* weight);

/// x . W^T, x an activation for the weight, with its slack.
[[nodiscard]] Bounded bounded_product(const BoundInputs& in, const Tensor& x, const char* weight);
/// Only the slack, where the value is known already.
[[nodiscard]] Tensor product_slack(const BoundInputs& in, const Tensor& x, const char* weight);

/// Rounds to bf16: the value, and the spread as its slack.
[[nodiscard]] Bounded rounded_bf16(const BoundInputs& in, Bounded b);

/// rmsnorm of rows already rounded to bf16, with the slack of what it makes of theirs.
[[nodiscard]] Bounded bounded_norm(const BoundInputs& in, Bounded rows, const char* weight);

/// What turning a pair exactly given may add to each of its entries.
[[nodiscard]] float turn_slack(float even, float odd) noexcept;

/// Slack of rows [count, width] after rotation: `tails` are the row tails (rope_dim wide, rounded to bf16, with their
/// spread); entries outside the tail keep `slack`, whose tail is overwritten. Row i turns by positions[i / per].
void rotate_slack(const BoundInputs& in, const Bounded& tails, std::span<const std::int64_t> positions,
                  std::int64_t per, Tensor& slack);

/// The last rope_dim entries of each row.
[[nodiscard]] Tensor row_tails(const BoundInputs& in, const Tensor& rows, std::int64_t width, std::int64_t tail);

/// Phases of one position for the role's frequencies.
[[nodiscard]] reference::RotaryPhase phase_at(const BoundInputs& in, std::int64_t position);
[[nodiscard]] std::vector<std::int64_t> call_positions(const CallShape& call);
[[nodiscard]] std::vector<std::int64_t> group_positions(const LayerRole& role, const CallShape& call);

/// The slack of a stage each of whose values is rounded on the way by itself or, before a rotation, one of a pair: such
/// a rounding moves a row by no more than its two largest slacks. Elements whose value is not finite are left out.
[[nodiscard]] StageSlack moved_by_entries(const BoundInputs& in, StageId stage, Tensor slack);

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
[[nodiscard]] Tensor lse_slack(const BoundInputs& in);
[[nodiscard]] Tensor attention_slack(const BoundInputs& in);
[[nodiscard]] StageSlack og_slack(const BoundInputs& in);
[[nodiscard]] Tensor out_slack(const BoundInputs& in);

/// Elements that a thread takes at a time of a loop over single elements.
inline constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 16U;

}  // namespace attndiff::deepseek_v41
