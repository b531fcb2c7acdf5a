#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "device/dense.h"
#include "device/queue.h"
#include "device/selection.h"
#include "kernels/compressor.h"
#include "kernels/elementwise.h"
#include "kernels/index_scores.h"
#include "kernels/matvec.h"
#include "kernels/quantize.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "kernels/sparse_attention.h"
#include "kernels/window.h"
#include "reference/rotary.h"

namespace attndiff::device {

/// The kernel launches and host steps that a layer's call is composed of, each replaceable by one that computes
/// something else: another form, or a known fault whose discovery is to be proved. The defaults are the
/// implementation; kernels know nothing of this table.
struct Launches {
  template <typename Args>
  using Launch = std::function<void(const Args&, cudaStream_t)>;

  Launch<kernels::RmsNormArgs> rms_norm =
      static_cast<void (*)(const kernels::RmsNormArgs&, cudaStream_t)>(kernels::launch_rms_norm);
  Launch<kernels::RotaryArgs> rotary = kernels::launch_rotary;
  Launch<kernels::QuantizeArgs> quantize = kernels::launch_quantize;
  Launch<kernels::ScaleArgs> scale = kernels::launch_scale;

  /// Products of one token, and all others.
  Launch<kernels::MatvecArgs> matvec = kernels::launch_matvec;
  std::function<void(Dense&, const DenseCall&, cudaStream_t)> multiply = device::multiply;

  Launch<kernels::RingWriteArgs> ring_write = kernels::launch_ring_write;
  Launch<kernels::IndexBuildArgs> index_build = kernels::launch_index_build;

  Launch<kernels::CompressorProductArgs> compressor_product = kernels::launch_compressor_product;
  Launch<kernels::PoolArgs> pool = kernels::launch_pool;
  Launch<kernels::PartialWriteArgs> partial_write = kernels::launch_partial_write;
  /// Empties the partial group's scores when a sequence starts.
  std::function<void(float* values, std::int64_t count, float value, cudaStream_t)> fill = kernels::launch_fill;

  Launch<kernels::IndexScoreArgs> index_scores = kernels::launch_index_scores;
  /// Brings scores to page-locked host memory, where they are complete when it returns.
  std::function<void(void* host, const void* scores, std::size_t bytes, cudaStream_t)> download_scores =
      copy_to_host_and_wait;
  std::function<Tensor(const ScoreRows&, reference::ThreadPool&)> candidate_mask = device::candidate_mask;
  std::function<Tensor(const ScoreRows&, const Tensor* mask, reference::ThreadPool&)> select_positions =
      device::select_positions;
  /// Brings picks to the device, in a sequence's own buffer.
  std::function<void(void* picks, const void* host, std::size_t bytes, cudaStream_t)> upload_selection = copy_to_device;

  std::function<void(const kernels::SparseAttentionArgs&, kernels::AttentionForm, cudaStream_t)> sparse_attention =
      kernels::launch_sparse_attention;

  /// Rotary frequencies of layers of a ratio; their cosines and sines are computed on the host.
  std::function<std::vector<float>(const ModelConfig&, std::int64_t ratio)> frequencies = reference::rotary_frequencies;
};

}  // namespace attndiff::device
