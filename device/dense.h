#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>

#include "device/memory.h"
#include "reference/contract/bfloat16.h"

namespace attndiff::device {

enum class DenseOutput : std::uint8_t { bf16, f32 };

/// y[b][t][o] = sum_k x[b][t][k] * w[b][o][k]: bf16 operands, float32 accumulation, one rounding (or none, f32) at the
/// end. Strides are in elements; a weight's rows are contiguous.
struct DenseCall {
  const Bf16* x = nullptr;
  const Bf16* w = nullptr;
  void* y = nullptr;
  std::int64_t tokens = 0;
  std::int64_t outputs = 0;
  std::int64_t depth = 0;
  std::int64_t x_stride = 0;  ///< from token to token
  std::int64_t y_stride = 0;
  std::int64_t batch = 1;
  std::int64_t x_batch_stride = 0;
  std::int64_t y_batch_stride = 0;
  DenseOutput output = DenseOutput::bf16;
};

/// Matrix products through cuBLASLt. Split sums may only be reduced in the accumulator's type, never in bf16, and an
/// algorithm is chosen once a shape, so that a call repeats bit for bit.
class Dense {
 public:
  Dense();
  Dense(const Dense&) = delete;
  Dense& operator=(const Dense&) = delete;
  ~Dense();

  void multiply(const DenseCall& call, cudaStream_t stream);
  [[nodiscard]] const DeviceBuffer& workspace() const noexcept { return workspace_; }

 private:
  /// What the choice of an algorithm depends on: extents, strides, alignment, output type.
  using Key = std::array<std::int64_t, 10>;

  cublasLtHandle_t handle_ = nullptr;
  DeviceBuffer workspace_;
  std::map<Key, cublasLtMatmulAlgo_t> algorithms_;
};

/// `dense.multiply(call, stream)`.
void multiply(Dense& dense, const DenseCall& call, cudaStream_t stream);

}  // namespace attndiff::device
