#include "device/weights.h"

#include <vector>

#include "device/queue.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"
#include "reference/product.h"
#include "reference/quantize.h"

namespace attndiff::device {
namespace {

std::string object_of(const LayerRole& role, const WeightSpec& spec) {
  return "layer " + std::to_string(role.layer_id) + ": weight " + spec.name;
}

void require_stored(const LayerRole& role, const WeightSpec& spec, const Weight& weight) {
  const bool type = weight.quantised() ? spec.may_be_e4m3 : weight.values.dtype() == spec.dtype;
  if (!type || !(weight.values.shape() == spec.shape)) {
    throw Error(ErrorKind::input,
                {.file = {},
                 .object = object_of(role, spec),
                 .problem = "the wrong type or shape",
                 .expected = std::string(name_of(spec.dtype)) + " " + spec.shape.text(),
                 .found = std::string(name_of(weight.values.dtype())) + " " + weight.values.shape().text()});
  }
  if (weight.quantised() && spec.shape[1] % reference::kFp8Block != 0) {
    throw Error(ErrorKind::refused, {.file = {},
                                     .object = object_of(role, spec),
                                     .problem = "an e4m3 weight's input is no whole number of fp8 blocks",
                                     .expected = "a multiple of " + std::to_string(reference::kFp8Block),
                                     .found = std::to_string(spec.shape[1])});
  }
}

/// bf16 values of an e4m3 weight: four significant bits times a power of two lose nothing unless they leave bf16's
/// range, which is refused.
std::vector<Bf16> dequantised(const LayerRole& role, const WeightSpec& spec, const Weight& weight) {
  const std::int64_t rows = weight.values.shape()[0];
  const std::int64_t depth = weight.values.shape()[1];
  std::vector<Bf16> values;
  values.reserve(static_cast<std::size_t>(rows * depth));
  std::vector<float> row(static_cast<std::size_t>(depth));
  for (std::int64_t r = 0; r < rows; ++r) {
    reference::weight_rows(weight, r, 1, row);
    for (const float v : row) {
      values.push_back(to_bf16(v));
      if (v == v && to_float(values.back()) != v) {
        throw Error(ErrorKind::refused, {.file = {},
                                         .object = object_of(role, spec),
                                         .problem = "a dequantised value is not exact in bf16",
                                         .expected = {},
                                         .found = std::to_string(v)});
      }
    }
  }
  return values;
}

DeviceWeight upload(const LayerRole& role, const WeightSpec& spec, const Weight& weight, cudaStream_t stream) {
  require_stored(role, spec, weight);
  DeviceWeight w;
  w.outputs = spec.shape[0];
  w.depth = spec.shape.rank() > 1 ? spec.shape[1] : 1;
  w.quantised_input = weight.quantised();
  w.dtype = spec.dtype;
  if (weight.quantised()) {
    const std::vector<Bf16> values = dequantised(role, spec, weight);
    w.values = DeviceBuffer(values.size() * sizeof(Bf16), object_of(role, spec));
    copy_to_device(w.values.data(), values.data(), w.values.bytes(), stream);
  } else {
    w.values = DeviceBuffer(weight.values.bytes(), object_of(role, spec));
    copy_to_device(w.values.data(), weight.values.raw(), w.values.bytes(), stream);
  }
  return w;
}

}  // namespace

DeviceWeights::DeviceWeights(const ModelConfig& config, const LayerRole& role, const LayerWeights& weights,
                             cudaStream_t stream) {
  for (const WeightSpec& spec : family_named(config.family).weights(config, role)) {
    weights_.emplace(spec.name, upload(role, spec, weights.at(spec.name), stream));
  }
}

const DeviceWeight& DeviceWeights::at(std::string_view name) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) {
    throw Error(ErrorKind::internal, "the layer has no weight " + std::string(name) + " on the device");
  }
  return found->second;
}

}  // namespace attndiff::device
