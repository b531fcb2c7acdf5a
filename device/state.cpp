#include "device/state.h"

#include <limits>
#include <string>

#include "device/queue.h"
#include "reference/contract/error.h"

namespace attndiff::device {
namespace {

const Tensor& required(const LayerRole& role, const char* name, const Tensor& part, DType dtype, const Shape& due) {
  const std::string object = "layer " + std::to_string(role.layer_id) + ": initial state " + name;
  if (!part.defined()) {
    throw Error(ErrorKind::refused, {.file = {},
                                     .object = object,
                                     .problem = "needed to start in mid-sequence, but not declared",
                                     .expected = {},
                                     .found = {}});
  }
  if (!(part.shape() == due) || part.dtype() != dtype) {
    throw Error(ErrorKind::refused, {.file = {},
                                     .object = object,
                                     .problem = "has the wrong type or shape",
                                     .expected = std::string(name_of(dtype)) + " " + due.text(),
                                     .found = std::string(name_of(part.dtype())) + " " + part.shape().text()});
  }
  return part;
}

}  // namespace

DeviceCache::DeviceCache(std::int64_t row_count, std::int64_t row_width, const char* what)
    : rows(static_cast<std::size_t>(row_count * row_width) * sizeof(Bf16), what),
      capacity(row_count),
      width(row_width) {}

DeviceState::DeviceState(const ModelConfig& config, const LayerRole& role)
    : config_(config),
      role_(role),
      ring_(static_cast<std::size_t>(config.window * config.head_dim) * sizeof(Bf16), "window ring") {
  if (!role.is_kv_source) {
    return;
  }
  if (role.ratio > 1) {
    partial_ =
        DeviceBuffer(static_cast<std::size_t>(2 * role.ratio * config.head_dim) * sizeof(float), "partial group");
  }
  const std::int64_t rows = config.max_seq / role.ratio;
  latents_ = std::make_shared<DeviceCache>(rows, config.head_dim, "latent cache");
  if (role.is_index_source) {
    index_keys_ = std::make_shared<DeviceCache>(rows, config.index_head_dim, "index-key cache");
  }
}

void DeviceState::reset(const Launches& launches, cudaStream_t stream) {
  clear(ring_.data(), ring_.bytes(), stream);
  if (partial_.data() != nullptr) {
    const std::int64_t half = role_.ratio * config_.head_dim;
    clear(partial(), partial_.bytes() / 2, stream);
    launches.fill(partial() + half, half, -std::numeric_limits<float>::infinity(), stream);
  }
  for (const auto& cache : {latents_, index_keys_}) {
    if (cache != nullptr) {
      clear(cache->rows.data(), cache->rows.bytes(), stream);
    }
  }
  next_position = 0;
}

void DeviceState::restore_partial(const InitialLayerState& declared, std::int64_t start_pos, cudaStream_t stream) {
  const bool between_groups = start_pos % role_.ratio == 0;
  if (between_groups && !declared.comp_kv_state.defined() && !declared.comp_score_state.defined()) {
    return;
  }
  const Shape due{role_.ratio, config_.head_dim};
  const Tensor& k = required(role_, "comp_kv_state", declared.comp_kv_state, DType::f32, due);
  const Tensor& g = required(role_, "comp_score_state", declared.comp_score_state, DType::f32, due);
  copy_to_device(partial(), k.raw(), k.bytes(), stream);
  copy_to_device(partial() + due.count(), g.raw(), g.bytes(), stream);
}

void DeviceState::restore(const InitialLayerState& declared, std::int64_t start_pos, const Launches& launches,
                          cudaStream_t stream) {
  reset(launches, stream);
  const Tensor& ring_rows = required(role_, "window", declared.window, DType::bf16, {config_.window, config_.head_dim});
  copy_to_device(ring(), ring_rows.raw(), ring_rows.bytes(), stream);
  if (role_.is_kv_source) {
    if (role_.ratio > 1) {
      restore_partial(declared, start_pos, stream);
    }
    const std::int64_t groups = start_pos / role_.ratio;
    const Tensor& rows = required(role_, "compress_kv", declared.compress_kv, DType::bf16, {groups, config_.head_dim});
    copy_to_device(latents_->rows.data(), rows.raw(), rows.bytes(), stream);
    if (role_.is_index_source) {
      const Tensor& keys = required(role_, "index_k", declared.index_k, DType::bf16, {groups, config_.index_head_dim});
      copy_to_device(index_keys_->rows.data(), keys.raw(), keys.bytes(), stream);
    }
  }
  next_position = start_pos;
}

void DeviceState::release() noexcept {
  ring_.release();
  partial_.release();
  latents_.reset();
  index_keys_.reset();
}

SlotFacts DeviceSlots::facts() const {
  SlotFacts f;
  if (compress_kv) {
    f.compress_kv = {compress_kv->owner, compress_kv->value->capacity, compress_kv->value->width};
  }
  if (index_k) {
    f.index_k = {index_k->owner, index_k->value->capacity, index_k->value->width};
  }
  if (selection) {
    f.selection = {selection->owner, selection->value.shape()};
  }
  if (candidates) {
    f.candidates = {candidates->owner, candidates->value.shape()};
  }
  return f;
}

}  // namespace attndiff::device
