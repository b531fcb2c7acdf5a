#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/dense.h"
#include "device/gpu.h"
#include "device/launches.h"
#include "device/queue.h"
#include "device/rotary_table.h"
#include "device/weights.h"
#include "device/workspace.h"
#include "kernels/sparse_attention.h"
#include "kernels/step_scalars.h"
#include "reference/contract/config.h"
#include "reference/contract/stage.h"
#include "reference/thread_pool.h"

namespace attndiff::device {

struct RuntimeOptions {
  std::optional<kernels::AttentionForm> attention;  ///< one form for every call, where it supports the dimensions
  bool padded_decode = false;                       ///< decode with selections padded to their widest
  bool poison = false;                              ///< poison the workspaces before every call
  bool clear_products = false;                      ///< zero a dense product's output first: see Runtime::linear
  int threads = 0;                                  ///< host threads for selections; 0: the machine's
  Launches launches = {};                           ///< what a call is composed of
};

/// One linear layer applied to rows of activations.
struct LinearCall {
  const Bf16* x = nullptr;  ///< [tokens, depth], contiguous, unless batched
  const DeviceWeight& weight;
  Bf16* y = nullptr;  ///< [tokens, outputs]
  std::int64_t tokens = 0;
  /// > 1: block b of the weight's rows takes columns [b * depth, (b + 1) * depth) of x and gives columns
  /// [b * outputs / batch, ..) of y.
  std::int64_t batch = 1;
};

/// What every sequence on one GPU shares: the configuration, prepared kernels, both rotary tables, workspaces for calls
/// of up to max_tokens tokens, and the weights, each allocated once. Calls run one at a time, on one stream.
class Runtime {
 public:
  /// Throws Error(unavailable) where the GPU cannot be used or lacks memory, Error(refused) for dimensions the kernels
  /// do not support, Error(input) for a configuration that contradicts itself.
  Runtime(const ModelConfig& config, std::span<const LayerRole> layers, int ordinal, RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime() = default;

  /// Uploads layer `layer`'s weights (an index into the layers given), replacing earlier ones.
  void upload(std::size_t layer, const LayerWeights& weights);
  [[nodiscard]] bool uploaded(std::size_t layer) const { return weights_.at(layer) != nullptr; }

  /// Makes this runtime's GPU the calling thread's.
  void activate() const;

  [[nodiscard]] const ModelConfig& config() const noexcept { return config_; }
  [[nodiscard]] std::span<const LayerRole> layers() const noexcept { return layers_; }
  [[nodiscard]] const ModelFamily& family() const noexcept { return family_; }
  [[nodiscard]] const Gpu& gpu() const noexcept { return gpu_; }
  [[nodiscard]] const RuntimeOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Launches& launches() const noexcept { return options_.launches; }
  [[nodiscard]] cudaStream_t stream() const noexcept { return queue_.handle(); }
  [[nodiscard]] const Queue& queue() const noexcept { return queue_; }
  [[nodiscard]] Workspace& workspace() noexcept { return workspace_; }
  [[nodiscard]] reference::ThreadPool& pool() noexcept { return pool_; }
  /// Throws Error(internal) where the layer's weights were not uploaded.
  [[nodiscard]] const DeviceWeights& weights(std::size_t layer) const;
  [[nodiscard]] RotaryTable& rotary(std::int64_t ratio);
  [[nodiscard]] kernels::AttentionForm attention_form(std::int64_t tokens) const noexcept;

  /// Makes `value` the step that kernels read; uploads it only when it differs from the last.
  void set_step(const kernels::StepScalars& value);
  [[nodiscard]] const kernels::StepScalars* step() const noexcept { return step_.as<kernels::StepScalars>(); }

  /// y = linear(x, W): the matrix-vector form for one token, else cuBLASLt. cuBLASLt's kernels store through the bulk
  /// copy engine, which compute-sanitizer's initcheck does not see: `clear_products` writes the output once before, so
  /// that initcheck can judge the project's own kernels; that every element is written shows in the poisoned run.
  void linear(const LinearCall& call);

 private:
  ModelConfig config_;
  std::vector<LayerRole> layers_;
  RuntimeOptions options_;
  const ModelFamily& family_;
  Gpu gpu_;
  Queue queue_;
  reference::ThreadPool pool_;
  Dense dense_;
  std::optional<RotaryTable> window_rotary_;
  std::optional<RotaryTable> compressed_rotary_;
  Workspace workspace_;
  DeviceBuffer step_;
  std::optional<kernels::StepScalars> last_step_;
  std::vector<std::unique_ptr<DeviceWeights>> weights_;
};

}  // namespace attndiff::device
