#pragma once

#include <array>
#include <string>
#include <vector>

#include "reference/contract/error.h"
#include "reference/deepseek_v41/forward.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff::deepseek_v41 {

/// A stage's value with what it was before its last rounding.
struct Rounded {
  Tensor value;      ///< bf16
  Tensor unrounded;  ///< f32, same shape
};

/// One layer's call in progress: its inputs, the observer's wishes, and helpers that the steps share.
class Call {
 public:
  Call(const Engine& engine, const LayerArgs& args, Observer& observer);

  [[nodiscard]] const ModelConfig& config() const noexcept { return engine_.config; }
  [[nodiscard]] const Steps& steps() const noexcept { return engine_.steps; }
  [[nodiscard]] reference::ThreadPool& pool() const noexcept { return engine_.pool; }
  [[nodiscard]] const LayerRole& role() const noexcept { return args_.role; }
  [[nodiscard]] const CallShape& shape() const noexcept { return args_.call; }
  [[nodiscard]] LayerState& state() const noexcept { return args_.state; }
  [[nodiscard]] Slots& slots() const noexcept { return args_.slots; }
  [[nodiscard]] const Weight& weight(const char* name) const { return args_.weights.at(name); }
  [[nodiscard]] std::span<const float> vector(const char* name) const { return weight(name).values.as<float>(); }
  /// The layer's input as float32 [tokens, dim].
  [[nodiscard]] const Tensor& x() const noexcept { return x_; }

  /// True when the observer asked for anything of that stage.
  [[nodiscard]] bool observed(StageId id) const noexcept { return interests_[id] != Interest::nothing; }
  /// Offers a stage; the observer may replace `value`. `unrounded` may be null.
  void publish(StageId id, Tensor& value, Tensor* unrounded = nullptr);
  void publish(StageId id, Rounded& rounded) { publish(id, rounded.value, &rounded.unrounded); }

  /// x . W^T in float32, W the weight of that name: x f32 [tokens, K]; the result is f32 [tokens, rows of W]. An e4m3
  /// weight gets its activation through the fp8 round trip first.
  [[nodiscard]] Tensor product(const Tensor& x, const char* name) const;

  /// rmsnorm of each row of `x` (f32, rounded to bf16 first when `round_input`), before its rounding.
  [[nodiscard]] Tensor norm(Tensor x, const char* name, bool round_input = true) const;

  /// Rounds rows [count, width] to bf16 and turns their last rope_dim entries: row i by the angle of positions[i /
  /// per].
  [[nodiscard]] Rounded rotated(Tensor x, std::span<const std::int64_t> positions, std::int64_t per) const;

  /// Positions start_pos ... start_pos + tokens - 1.
  [[nodiscard]] std::vector<std::int64_t> token_positions() const;

  /// Phases of one position.
  [[nodiscard]] reference::RotaryPhase phase(std::int64_t position) const;

  /// Runs `round_trip` over each row of a bf16 tensor whose rows are `width` wide.
  [[nodiscard]] Tensor quantised(const Tensor& t, std::int64_t width,
                                 const std::function<void(std::span<float>)>& round_trip) const;

  /// Error(refused) that names this layer.
  [[nodiscard]] Error refusal(const std::string& object, const std::string& problem, const std::string& expected = {},
                              const std::string& found = {}) const;

 private:
  const Engine& engine_;
  const LayerArgs& args_;
  Observer& observer_;
  LayerCall call_;
  std::array<Interest, kStageCount> interests_{};
  std::vector<float> frequencies_;
  Tensor x_;
};

/// Rounds a float32 tensor to bf16 and keeps both.
[[nodiscard]] Rounded rounded(Tensor unrounded);

/// The steps of a layer, in order; each publishes its stages.
struct Latents {
  Rounded latent;                       ///< [G, head_dim]; undefined when the call completed no group
  std::vector<std::int64_t> positions;  ///< of each group
};

/// qr and q.
struct Query {
  Tensor qr;  ///< bf16 [tokens, q_rank]
  Tensor q;   ///< bf16 [tokens, n_heads, head_dim]
};
[[nodiscard]] Query make_query(Call& call);
/// kv_pre, kv and ring; returns the attended window rows, bf16.
[[nodiscard]] Tensor make_window_rows(Call& call);
/// comp_state and latent.
[[nodiscard]] Latents compress(Call& call);
/// index_k_pre ... selection; publishes the slots index_k, candidates, selection.
void run_indexer(Call& call, const Tensor& qr, const Latents& latents);
/// compress_pre and compress_kv into the latent cache.
void store_latents(Call& call, Latents& latents);
/// og and out from o.
[[nodiscard]] Tensor project_output(Call& call, const Tensor& o);

}  // namespace attndiff::deepseek_v41
