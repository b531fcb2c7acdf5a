#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "device/memory.h"
#include "reference/contract/config.h"
#include "reference/contract/weights.h"

namespace attndiff::device {

/// One weight on the device, row-major [outputs, depth] in bf16 or f32; a vector has depth 1.
struct DeviceWeight {
  DeviceBuffer values;
  DType dtype = DType::bf16;
  std::int64_t outputs = 0;
  std::int64_t depth = 1;
  bool quantised_input = false;  ///< stored as e4m3: its input goes through the fp8 round trip first
};

/// One layer's weights. e4m3 weights are dequantised to bf16 on the way, which is exact.
class DeviceWeights {
 public:
  /// Uploads what the layer's kind needs; throws Error(input) where a weight has the wrong shape or type.
  DeviceWeights(const ModelConfig& config, const LayerRole& role, const LayerWeights& weights, cudaStream_t stream);

  /// Throws Error(internal) when the layer's kind has no such weight.
  [[nodiscard]] const DeviceWeight& at(std::string_view name) const;
  /// A float32 weight's values.
  [[nodiscard]] const float* f32(std::string_view name) const { return at(name).values.as<float>(); }

 private:
  std::map<std::string, DeviceWeight, std::less<>> weights_;
};

}  // namespace attndiff::device
