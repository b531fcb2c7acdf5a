#include "device/runtime.h"

#include <string>
#include <utility>

#include "device/refusals.h"
#include "kernels/index_scores.h"
#include "kernels/launch.h"
#include "kernels/matvec.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"

namespace attndiff::device {
namespace {

/// The GPU, once the dimensions are known to fit it: nothing is allocated for a configuration that is refused.
Gpu checked_gpu(const ModelConfig& config, std::span<const LayerRole> layers, int ordinal) {
  Gpu gpu = require_gpu(ordinal);
  check_supported(config, layers, gpu.shared_bytes);
  return gpu;
}

}  // namespace

Runtime::Runtime(const ModelConfig& config, std::span<const LayerRole> layers, int ordinal, RuntimeOptions options)
    : config_(config),
      layers_(layers.begin(), layers.end()),
      options_(std::move(options)),
      family_(family_named(config.family)),
      gpu_(checked_gpu(config, layers, ordinal)),
      pool_(options_.threads),
      workspace_(config_, layers_),
      step_(sizeof(kernels::StepScalars), "step"),
      weights_(layers.size()) {
  bool indexes = false;
  for (const LayerRole& role : layers_) {
    auto& table = role.ratio == 0 ? window_rotary_ : compressed_rotary_;
    if (!table) {
      table.emplace(config_, options_.launches.frequencies(config_, role.ratio));
    }
    indexes = indexes || role.is_index_source;
  }
  kernels::prepare_sparse_attention(config_.head_dim, most_columns(config_, layers_));
  if (indexes) {
    kernels::prepare_index_scores(config_.index_heads, config_.index_head_dim);
  }
}

void Runtime::activate() const { ATTNDIFF_CUDA(cudaSetDevice(gpu_.ordinal)); }

void Runtime::upload(std::size_t layer, const LayerWeights& weights) {
  activate();
  weights_.at(layer) = std::make_unique<DeviceWeights>(config_, layers_.at(layer), weights, stream());
}

const DeviceWeights& Runtime::weights(std::size_t layer) const {
  if (!uploaded(layer)) {
    throw Error(ErrorKind::internal,
                "layer " + std::to_string(layers_.at(layer).layer_id) + ": its weights were not uploaded");
  }
  return *weights_[layer];
}

RotaryTable& Runtime::rotary(std::int64_t ratio) { return ratio == 0 ? *window_rotary_ : *compressed_rotary_; }

kernels::AttentionForm Runtime::attention_form(std::int64_t tokens) const noexcept {
  if (options_.attention && kernels::attention_supports(*options_.attention, config_.head_dim)) {
    return *options_.attention;
  }
  return kernels::attention_form(tokens, config_.n_heads, config_.head_dim);
}

void Runtime::set_step(const kernels::StepScalars& value) {
  if (last_step_ != value) {
    kernels::launch_set_step(step_.as<kernels::StepScalars>(), value, stream());
    last_step_ = value;
  }
}

void Runtime::linear(const LinearCall& call) {
  const DeviceWeight& w = call.weight;
  const std::int64_t outputs = w.outputs / call.batch;
  const Bf16* x = call.x;
  if (w.quantised_input) {
    auto* activation = workspace_.activation.as<Bf16>();
    launches().quantize({.from = x, .to = activation, .count = call.tokens * w.depth}, stream());
    x = activation;
  }
  if (call.tokens == 1 && kernels::matvec_supports(w.depth)) {
    launches().matvec({.x = x,
                       .w = w.values.as<Bf16>(),
                       .y = call.y,
                       .y_f32 = nullptr,
                       .outputs = outputs,
                       .depth = w.depth,
                       .batch = call.batch},
                      stream());
    return;
  }
  if (options_.clear_products) {
    ATTNDIFF_CUDA(
        cudaMemsetAsync(call.y, 0, static_cast<std::size_t>(call.tokens * w.outputs) * sizeof(Bf16), stream()));
  }
  launches().multiply(dense_,
                      {.x = x,
                       .w = w.values.as<Bf16>(),
                       .y = call.y,
                       .tokens = call.tokens,
                       .outputs = outputs,
                       .depth = w.depth,
                       .x_stride = w.depth * call.batch,
                       .y_stride = w.outputs,
                       .batch = call.batch,
                       .x_batch_stride = w.depth,
                       .y_batch_stride = outputs,
                       .output = DenseOutput::bf16},
                      stream());
}

}  // namespace attndiff::device
