#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/memory.h"
#include "reference/contract/config.h"

namespace attndiff::device {

/// Elements of every buffer that a call of at most max_tokens tokens needs. Buffers that no layer of the model uses are
/// empty.
struct WorkspaceSizes {
  std::int64_t x = 0;           ///< bf16 [max_tokens, dim]
  std::int64_t activation = 0;  ///< bf16: a projection's input after the fp8 round trip
  std::int64_t qr = 0;          ///< bf16 [max_tokens, q_rank]
  std::int64_t q = 0;           ///< bf16 [max_tokens, n_heads, head_dim]; o and its rotated copy are as large
  std::int64_t kv = 0;          ///< bf16 [max_tokens, head_dim]
  std::int64_t members = 0;     ///< f32 [max_tokens, head_dim], twice: the compressor's k and g
  std::int64_t latent = 0;      ///< bf16 [most groups of a call, head_dim]
  std::int64_t index_k = 0;     ///< bf16 [most groups of a call, index_head_dim]
  std::int64_t index_q = 0;     ///< bf16 [max_tokens, index_heads, index_head_dim]
  std::int64_t index_w = 0;     ///< bf16 [max_tokens, index_heads]
  std::int64_t scores = 0;      ///< bf16 [tokens, len], the larger of prefill and decode
  std::int64_t idx = 0;         ///< i32 [max_tokens, most columns]
  std::int64_t lse = 0;         ///< f32 [max_tokens, n_heads]
  std::int64_t og = 0;          ///< bf16 [max_tokens, groups * o_rank]
  std::int64_t out = 0;         ///< bf16 [max_tokens, dim]
};

[[nodiscard]] WorkspaceSizes workspace_sizes(const ModelConfig& config, std::span<const LayerRole> layers);

/// Most columns of `idx` in any call: the window's, and the selection's where a layer has one.
[[nodiscard]] std::int64_t most_columns(const ModelConfig& config, std::span<const LayerRole> layers);

/// Selection columns of a padded decode step: min(index_topk, positions the longest sequence compresses to), so that
/// window + these is min(window + index_topk, limit).
[[nodiscard]] std::int64_t padded_selection_columns(const ModelConfig& config, const LayerRole& role) noexcept;

/// The buffers, allocated once and used by every call in turn.
class Workspace {
 public:
  Workspace(const ModelConfig& config, std::span<const LayerRole> layers);

  /// Fills every buffer with kernels::kPoisonWord: a call must not depend on what an earlier one left.
  void poison(cudaStream_t stream);

  DeviceBuffer x;
  DeviceBuffer activation;
  DeviceBuffer qr;
  DeviceBuffer q;
  DeviceBuffer kv;
  DeviceBuffer member_k;
  DeviceBuffer member_g;
  DeviceBuffer latent;
  DeviceBuffer index_k;
  DeviceBuffer index_q;
  DeviceBuffer index_w;
  DeviceBuffer scores;
  DeviceBuffer idx;
  DeviceBuffer lse;
  DeviceBuffer o;
  DeviceBuffer o_rotated;
  DeviceBuffer og;
  DeviceBuffer out;
  PinnedBuffer host_scores;  ///< as large as `scores`

 private:
  explicit Workspace(const WorkspaceSizes& sizes);
};

}  // namespace attndiff::device
