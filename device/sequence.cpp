#include "device/sequence.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "device/layer_run.h"
#include "reference/contract/error.h"
#include "reference/deepseek_v41/forward.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff::device {
namespace {

std::shared_ptr<const DeviceCache> cache_of(const Tensor& rows, const char* what, cudaStream_t stream) {
  auto cache = std::make_shared<DeviceCache>(rows.shape()[0], rows.shape()[1], what);
  copy_to_device(cache->rows.data(), rows.raw(), rows.bytes(), stream);
  return cache;
}

std::size_t selection_bytes(const Runtime& runtime) {
  const ModelConfig& c = runtime.config();
  const std::int64_t widest = most_columns(c, runtime.layers()) - c.window;
  return static_cast<std::size_t>(c.max_tokens * widest) * sizeof(std::int32_t);
}

}  // namespace

DeviceSequence::DeviceSequence(Runtime& runtime) : runtime_(runtime) {
  runtime.activate();
  selection_.picks = DeviceBuffer(selection_bytes(runtime), "selection");
  states_.reserve(runtime.layers().size());
  for (const LayerRole& role : runtime.layers()) {
    states_.emplace_back(runtime.config(), role).reset(runtime.launches(), runtime.stream());
  }
}

void DeviceSequence::resume(std::int64_t start_pos, std::span<const InitialLayerState> states,
                            std::optional<std::int64_t> compress_kv_owner, std::optional<std::int64_t> index_k_owner) {
  runtime_.activate();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const LayerRole& role = runtime_.layers()[i];
    states_[i].restore(states[i], start_pos, runtime_.launches(), runtime_.stream());
    if (!role.is_kv_source) {
      continue;
    }
    if (compress_kv_owner.value_or(role.layer_id) == role.layer_id) {
      slots_.compress_kv = {.value = states_[i].latents(), .owner = role.layer_id};
    }
    if (role.is_index_source && index_k_owner.value_or(role.layer_id) == role.layer_id) {
      slots_.index_k = {.value = states_[i].index_keys(), .owner = role.layer_id};
    }
  }
}

void DeviceSequence::begin_step(std::size_t layer, const CallShape& call) {
  if ((!last_layer_ || layer <= *last_layer_) && call.prefill()) {
    slots_ = DeviceSlots{};
  }
  last_layer_ = layer;
}

void DeviceSequence::set_shared(const SharedInputs& shared) {
  constexpr std::int64_t kDeclared = -1;
  if (shared.compress_kv.defined()) {
    slots_.compress_kv = {.value = cache_of(shared.compress_kv, "declared latents", runtime_.stream()),
                          .owner = kDeclared};
  }
  if (shared.index_k.defined()) {
    slots_.index_k = {.value = cache_of(shared.index_k, "declared index keys", runtime_.stream()), .owner = kDeclared};
  }
  if (shared.selection.defined()) {
    publish_selection(shared.selection, kDeclared);
  }
  if (shared.candidates.defined()) {
    slots_.candidates = {.value = shared.candidates, .owner = kDeclared};
  }
}

void DeviceSequence::publish_selection(Tensor picks, std::int64_t owner) {
  const auto values = std::as_const(picks).as<std::int32_t>();
  const std::size_t fits = selection_.picks.bytes() / sizeof(std::int32_t);
  if (values.size() <= fits) {
    const bool one_row = picks.shape().rank() == 2 && picks.shape()[0] == 1;
    std::vector<std::int32_t> row(values.begin(), values.end());
    if (one_row) {
      row.resize(fits / static_cast<std::size_t>(runtime_.config().max_tokens), -1);
    }
    runtime_.launches().upload_selection(selection_.picks.data(), row.data(), row.size() * sizeof(std::int32_t),
                                         runtime_.stream());
  }
  // A larger one is refused by its shape when a layer reads the slot.
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  selection_.lowest = values.empty() ? -1 : *lowest;
  selection_.highest = values.empty() ? -1 : *highest;
  slots_.selection = {.value = std::move(picks), .owner = owner};
}

void DeviceSequence::check_selected(const LayerRole& role, const CallShape& call) const {
  const std::int64_t len = deepseek_v41::compressed_length(role, call);
  if (role.is_index_source || len == 0 || (selection_.lowest >= -1 && selection_.highest < len)) {
    return;
  }
  const Tensor& picks = slots_.selection->value;
  check_entries(role, "slot selection", picks.as<std::int32_t>(), picks.shape(), len);
}

DeviceBuffer& DeviceSequence::scratch(int stage, std::size_t bytes) {
  DeviceBuffer& buffer = scratch_[stage];
  if (buffer.bytes() < bytes) {
    runtime_.queue().wait();
    buffer.release();
    buffer = DeviceBuffer(bytes, "observed stage");
  }
  return buffer;
}

LayerViews DeviceSequence::forward(std::size_t layer, const CallShape& call, std::int64_t sequence, const Tensor& x,
                                   const SharedInputs* shared, Observer& observer) {
  const LayerRole& role = runtime_.layers()[layer];
  deepseek_v41::check_call(runtime_.config(), role, call, x.shape());
  check_continues(role, call, states_.at(layer).next_position);
  runtime_.activate();
  begin_step(layer, call);
  if (shared != nullptr) {
    set_shared(*shared);
  }
  check_slots(runtime_.config(), role, call, slots_.facts());
  check_selected(role, call);
  LayerRun run(runtime_, *this, layer, call, sequence, observer);
  LayerViews views = run.execute(x);
  states_[layer].next_position = call.start_pos + call.tokens;
  return views;
}

void DeviceSequence::release() noexcept {
  slots_ = DeviceSlots{};
  for (DeviceState& state : states_) {
    state.release();
  }
}

Tensor download(const TensorView& view, const Queue& queue) {
  Tensor host(view.dtype, view.shape);
  copy_to_host(host.raw(), view.data, host.bytes(), queue.handle());
  queue.wait();
  return host;
}

LayerResult download(const LayerViews& views, const Queue& queue) {
  LayerResult result;
  result.q = download(views.q, queue);
  result.window_rows = download(views.window_rows, queue);
  result.idx = download(views.idx, queue);
  result.o = download(views.o, queue);
  result.out = download(views.out, queue);
  result.compressed_count = views.compressed_count;
  if (views.compressed_count > 0) {
    const Tensor rows = download(views.compressed_rows, queue);
    auto cache = std::make_shared<RowCache>(views.compressed_count, rows.shape()[1]);
    cache->write(0, rows.as<Bf16>());
    result.compressed_rows = std::move(cache);
  }
  return result;
}

}  // namespace attndiff::device
