#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/contract/config.h"
#include "reference/contract/tensor.h"

namespace attndiff {

/// A kv source's cache of compressed rows, bf16 [capacity, width], zero where nothing was written.
/// Storage grows with what is written, so a million-position cache costs only its used part.
class RowCache {
 public:
  RowCache(std::int64_t capacity, std::int64_t width);

  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::int64_t width() const noexcept { return width_; }
  /// Rows from 0 up to the last one ever written.
  [[nodiscard]] std::int64_t written() const noexcept { return static_cast<std::int64_t>(values_.size()) / width_; }

  /// Stores whole rows from row `first`; throws Error(refused) past the capacity.
  void write(std::int64_t first, std::span<const Bf16> rows);
  /// The rows written so far, [written(), width]; rows behind them are zero.
  [[nodiscard]] std::span<const Bf16> written_rows() const noexcept { return values_; }
  /// Copies the first `count` rows into `out` (count * width values); rows never written read as zero.
  /// Throws Error(refused) past the capacity.
  void read(std::int64_t count, std::span<Bf16> out) const;

 private:
  std::int64_t capacity_;
  std::int64_t width_;
  std::vector<Bf16> values_;
};

/// What one layer carries from call to call. Fields that a layer's kind does not have stay empty.
struct LayerState {
  Tensor ring;        ///< bf16 [window, head_dim]
  Tensor comp_state;  ///< f32 [2, ratio, head_dim]: partial group's k (0), then g (-inf); kv sources, ratio > 1
  std::shared_ptr<RowCache> latents;     ///< compress_kv cache [max_seq / ratio, head_dim]; kv sources
  std::shared_ptr<RowCache> index_keys;  ///< index_k cache [max_seq / ratio, index_head_dim]; kv sources that index
};

/// The state of a layer at the start of a sequence.
[[nodiscard]] LayerState new_state(const ModelConfig& config, const LayerRole& role);

/// A slot's value with the layer that wrote it (-1: declared by the fixture).
template <typename T>
struct Slot {
  T value;
  std::int64_t owner = -1;
};

/// The values layers share. A slot keeps its value until the next source writes it.
struct Slots {
  std::optional<Slot<std::shared_ptr<const RowCache>>> compress_kv;
  std::optional<Slot<std::shared_ptr<const RowCache>>> index_k;
  std::optional<Slot<Tensor>> selection;   ///< i32 [tokens, k], ascending, -1 for an absent pick, without offset
  std::optional<Slot<Tensor>> candidates;  ///< u8 [tokens, len]
};

/// What a fixture declares about one layer at the start of its first step, where that is in mid-sequence.
struct InitialLayerState {
  Tensor window;            ///< bf16 [window, head_dim]
  Tensor comp_kv_state;     ///< f32 [ratio, head_dim]; kv sources with ratio > 1
  Tensor comp_score_state;  ///< f32 [ratio, head_dim]
  Tensor compress_kv;       ///< bf16 [groups so far, head_dim]; kv sources
  Tensor index_k;           ///< bf16 [groups so far, index_head_dim]; kv sources that index
};

/// Slot values a fixture sets before a layer runs, for a layer whose source is not in the file.
struct SharedInputs {
  Tensor compress_kv;  ///< bf16 [rows, head_dim]
  Tensor index_k;      ///< bf16 [rows, index_head_dim]
  Tensor selection;    ///< i32 [tokens, k]
  Tensor candidates;   ///< u8 [tokens, len]
};

/// One layer's results by the names a serving engine would use.
struct LayerResult {
  Tensor q;                                         ///< bf16 [tokens, n_heads, head_dim]
  Tensor window_rows;                               ///< bf16 [attended window rows, head_dim]
  std::shared_ptr<const RowCache> compressed_rows;  ///< the published latents this call attended; null without any
  std::int64_t compressed_count = 0;                ///< how many of its rows: (start_pos + tokens) / ratio
  Tensor idx;                                       ///< i32 [tokens, window columns + selection columns]
  Tensor o;                                         ///< bf16 [tokens, n_heads, head_dim], before the inverse rotation
  Tensor out;                                       ///< bf16 [tokens, dim]
};

}  // namespace attndiff
