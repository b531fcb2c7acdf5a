#include "reference/contract/state.h"

#include <algorithm>
#include <limits>

#include "reference/contract/error.h"

namespace attndiff {

RowCache::RowCache(std::int64_t capacity, std::int64_t width) : capacity_(capacity), width_(width) {
  if (capacity < 0 || width <= 0) {
    throw Error(ErrorKind::internal, "a row cache needs a width and a capacity");
  }
}

void RowCache::write(std::int64_t first, std::span<const Bf16> rows) {
  const std::int64_t count = static_cast<std::int64_t>(rows.size()) / width_;
  if (count * width_ != static_cast<std::int64_t>(rows.size())) {
    throw Error(ErrorKind::internal, "a row cache takes whole rows");
  }
  if (first < 0 || first + count > capacity_) {
    throw Error(ErrorKind::refused, {.file = {},
                                     .object = "row cache",
                                     .problem = "a write passes the cache's end",
                                     .expected = "rows below " + std::to_string(capacity_),
                                     .found = "row " + std::to_string(first + count - 1)});
  }
  const auto begin = static_cast<std::size_t>(first * width_);
  values_.resize(std::max(values_.size(), begin + rows.size()));
  std::copy(rows.begin(), rows.end(), values_.begin() + static_cast<std::ptrdiff_t>(begin));
}

void RowCache::read(std::int64_t count, std::span<Bf16> out) const {
  if (count * width_ != static_cast<std::int64_t>(out.size())) {
    throw Error(ErrorKind::internal, "a row cache is read into as many rows as were asked for");
  }
  if (count > capacity_) {
    throw Error(ErrorKind::refused, {.file = {},
                                     .object = "row cache",
                                     .problem = "a read passes the cache's end",
                                     .expected = "at most " + std::to_string(capacity_) + " rows",
                                     .found = std::to_string(count)});
  }
  const std::size_t have = std::min(out.size(), values_.size());
  std::copy_n(values_.begin(), have, out.begin());
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(have), out.end(), Bf16{});
}

LayerState new_state(const ModelConfig& config, const LayerRole& role) {
  LayerState state;
  state.ring = Tensor(DType::bf16, {config.window, config.head_dim});
  if (!role.is_kv_source) {
    return state;
  }
  if (role.ratio > 1) {
    state.comp_state = Tensor(DType::f32, {2, role.ratio, config.head_dim});
    const auto scores = state.comp_state.as<float>().subspan(static_cast<std::size_t>(role.ratio * config.head_dim));
    std::fill(scores.begin(), scores.end(), -std::numeric_limits<float>::infinity());
  }
  const std::int64_t rows = config.max_seq / role.ratio;
  state.latents = std::make_shared<RowCache>(rows, config.head_dim);
  if (role.is_index_source) {
    state.index_keys = std::make_shared<RowCache>(rows, config.index_head_dim);
  }
  return state;
}

}  // namespace attndiff
