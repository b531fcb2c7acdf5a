#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attndiff {

/// Which index keys a kv source's indexer scores against in a call that completes no group.
enum class IndexKeyRule : std::uint8_t {
  slot,  ///< whatever the slot `index_k` holds, even another source's cache: the released code's behaviour
  own,   ///< its own cache: a kv source publishes its key cache at every call, as serving engines do
};

[[nodiscard]] const char* name_of(IndexKeyRule rule) noexcept;

/// The dimensions and constants of one model (docs/numerics.md lists the released values).
struct ModelConfig {
  std::int64_t dim = 0;               ///< width of a layer's input and output
  std::int64_t n_heads = 0;           ///< attention heads
  std::int64_t head_dim = 0;          ///< width of a head, of a window row and of a latent
  std::int64_t rope_dim = 0;          ///< trailing entries of a row that rotary turns
  std::int64_t q_rank = 0;            ///< width of the low-rank query
  std::int64_t o_rank = 0;            ///< width of one output group's low-rank projection
  std::int64_t groups = 0;            ///< output groups; each takes n_heads / groups heads
  std::int64_t window = 0;            ///< sliding-window length, in tokens
  std::int64_t index_heads = 0;       ///< indexer heads
  std::int64_t index_head_dim = 0;    ///< width of an index key
  std::int64_t index_topk = 0;        ///< compressed positions a query may select
  std::int64_t cand_topk_blocks = 0;  ///< candidate blocks kept per query
  std::int64_t cand_block = 0;        ///< positions in a candidate block
  std::int64_t max_seq = 0;           ///< longest sequence, in tokens
  std::int64_t max_tokens = 0;        ///< most tokens of one call
  std::int64_t orig_seq = 0;          ///< YaRN's original sequence length; 0 turns YaRN off

  double eps = 0;                  ///< RMSNorm epsilon
  double rope_theta = 0;           ///< rotary base of window-only layers
  double compress_rope_theta = 0;  ///< rotary base of layers with compressed positions
  double rope_factor = 0;          ///< YaRN scaling factor
  double beta_fast = 0;            ///< YaRN upper rotation count
  double beta_slow = 0;            ///< YaRN lower rotation count

  std::string family = "deepseek-v41";
  IndexKeyRule index_keys = IndexKeyRule::slot;
};

/// What one layer does beyond its sliding window.
struct LayerRole {
  std::int64_t layer_id = 0;
  std::int64_t ratio = 0;  ///< tokens per compressed position; 0: window only
  bool is_kv_source = false;
  bool is_index_source = false;
  bool is_candidate_source = false;
  bool uses_candidates = false;
};

/// The layer's kind in the field's words: "ratio 2 kv+index source", "window only", ...
[[nodiscard]] std::string kind_of(const LayerRole& role);

/// The tokens of one call: `start_pos` positions came before.
struct CallShape {
  std::int64_t tokens = 0;
  std::int64_t start_pos = 0;

  [[nodiscard]] bool prefill() const noexcept { return start_pos == 0; }
};

/// A named integer or real member of ModelConfig: one table for readers, writers and recipes.
struct ConfigInt {
  const char* name;
  std::int64_t ModelConfig::*member;
};
struct ConfigReal {
  const char* name;
  double ModelConfig::*member;
};
[[nodiscard]] std::span<const ConfigInt> config_ints() noexcept;
[[nodiscard]] std::span<const ConfigReal> config_reals() noexcept;

/// The same for a role's flags.
struct RoleFlag {
  const char* name;
  bool LayerRole::*member;
};
[[nodiscard]] std::span<const RoleFlag> role_flags() noexcept;

/// Everything wrong with a configuration and its layers, one sentence each; empty when sound.
[[nodiscard]] std::vector<std::string> violations(const ModelConfig& config, std::span<const LayerRole> layers);

}  // namespace attndiff
