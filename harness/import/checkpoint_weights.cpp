#include "harness/import/checkpoint_weights.h"

#include <array>
#include <string_view>
#include <utility>

#include "reference/contract/error.h"
#include "reference/formats.h"

namespace attndiff {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kOtherNames{{
    {"sink", "attn_sink"},
    {"comp_wkv", "compressor.wkv"},
    {"comp_wgate", "compressor.wgate"},
    {"comp_norm", "compressor.norm"},
    {"idx_wq_b", "indexer.wq_b"},
    {"idx_weights_proj", "indexer.weights_proj"},
    {"idx_wk", "indexer.wk"},
    {"idx_k_norm", "indexer.k_norm"},
}};

void require_shape(const Tensor& tensor, const Shape& shape, const std::string& file, const std::string& name) {
  if (!(tensor.shape() == shape)) {
    throw Error(ErrorKind::input,
                {file, name, "wrong shape", "shape " + shape.text(), "shape " + tensor.shape().text()});
  }
}

Shape scale_shape(const Shape& shape) {
  const auto blocks = [](std::int64_t extent) { return (extent + kE4m3Block - 1) / kE4m3Block; };
  return {blocks(shape[0]), blocks(shape[1])};
}

/// The values of codes and scales, which bf16 holds unless they leave its range.
Tensor dequantised(const Tensor& codes, const Tensor& scales, const std::string& file, const std::string& name) {
  Tensor values(DType::f32, codes.shape());
  const auto out = values.as<float>();
  const std::int64_t width = codes.shape()[1];
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / width;
    const auto column = static_cast<std::int64_t>(i) % width;
    const auto block = static_cast<std::size_t>(row / kE4m3Block * scales.shape()[1] + column / kE4m3Block);
    const float value = reference::e4m3_decode(static_cast<std::uint8_t>(codes.raw()[i])) *
                        reference::e8m0_decode(scales.as<std::uint8_t>()[block]);
    if (round_bf16(value) != value && value == value) {
      throw Error(ErrorKind::input,
                  {file, name, "a value that bf16 does not hold", "values within bf16's range",
                   std::to_string(value) + " at " + index_text(codes.shape(), static_cast<std::int64_t>(i))});
    }
    out[i] = value;
  }
  return values;
}

}  // namespace

std::string checkpoint_name(const std::string& weight) {
  for (const auto& [ours, theirs] : kOtherNames) {
    if (weight == ours) {
      return std::string(theirs);
    }
  }
  return weight;
}

Weight checkpoint_weight(const ArraySource& checkpoint, const std::string& prefix, std::int64_t layer_id,
                         const WeightSpec& spec) {
  const std::string module = prefix + "layers." + std::to_string(layer_id) + ".attn." + checkpoint_name(spec.name);
  const std::string name = std::string_view(spec.name) == "sink" ? module : module + ".weight";
  const std::string& file = checkpoint.path();
  const Array array = checkpoint.read(name);
  if (array.info.type != ElementType::e4m3) {
    Weight weight{.values = tensor_of(array, spec.dtype, file, name), .scales = {}};
    require_shape(weight.values, spec.shape, file, name);
    return weight;
  }
  Weight weight{.values = tensor_of(array, DType::e4m3, file, name), .scales = {}};
  require_shape(weight.values, spec.shape, file, name);
  if (spec.shape.rank() != 2) {
    throw Error(ErrorKind::input, {file, name, "wrong element type", name_of(spec.dtype), array.info.type_name});
  }
  const std::string scale_name = module + ".scale";
  weight.scales = tensor_of(checkpoint.read(scale_name), DType::u8, file, scale_name);
  require_shape(weight.scales, scale_shape(spec.shape), file, scale_name);
  if (spec.may_be_e4m3) {
    return weight;
  }
  Tensor values = dequantised(weight.values, weight.scales, file, name);
  return {.values = spec.dtype == DType::bf16 ? to_bf16(values) : std::move(values), .scales = {}};
}

}  // namespace attndiff
