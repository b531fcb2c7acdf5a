#include "harness/import/array_source.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "harness/import/npz.h"
#include "harness/import/safetensors.h"
#include "harness/import/safetensors_index.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

Shape shape_of(const Array& array, const std::string& file, const std::string& name) {
  if (array.info.shape.size() > Shape::kMaxRank) {
    throw Error(ErrorKind::input, {.file = file,
                                   .object = name,
                                   .problem = "too many dimensions",
                                   .expected = "at most " + std::to_string(Shape::kMaxRank),
                                   .found = std::to_string(array.info.shape.size())});
  }
  return Shape(std::span<const std::int64_t>(array.info.shape));
}

template <typename From>
From element(const Array& array, std::size_t i) {
  From value;
  std::memcpy(&value, array.bytes.data() + i * sizeof(From), sizeof(From));
  return value;
}

/// Every value of a float32 array, which bf16 must hold.
void fill_bf16(const Array& array, Tensor& into, const std::string& file, const std::string& name) {
  const auto out = into.as<Bf16>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto value = element<float>(array, i);
    out[i] = to_bf16(value);
    if (to_float(out[i]) != value && value == value) {
      throw Error(ErrorKind::input, {.file = file,
                                     .object = name,
                                     .problem = "a float32 value that bf16 does not hold",
                                     .expected = "bf16, or float32 values that are exact in it",
                                     .found = std::to_string(value) + " at element " + std::to_string(i)});
    }
  }
}

void fill_f32(const Array& array, Tensor& into) {
  const auto out = into.as<float>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = to_float(element<Bf16>(array, i));
  }
}

void fill_i32(const Array& array, Tensor& into, const std::string& file, const std::string& name) {
  const auto out = into.as<std::int32_t>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto value = element<std::int64_t>(array, i);
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorKind::input, {.file = file,
                                     .object = name,
                                     .problem = "a value beyond int32",
                                     .expected = "positions, or -1",
                                     .found = std::to_string(value) + " at element " + std::to_string(i)});
    }
    out[i] = static_cast<std::int32_t>(value);
  }
}

bool same_bytes(ElementType from, DType to) {
  switch (to) {
    case DType::bf16:
      return from == ElementType::bf16;
    case DType::f32:
      return from == ElementType::f32;
    case DType::i32:
      return from == ElementType::i32;
    case DType::u8:
      return from == ElementType::u8 || from == ElementType::boolean || from == ElementType::e8m0;
    case DType::e4m3:
      return from == ElementType::e4m3;
  }
  return false;
}

}  // namespace

std::size_t size_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::e4m3:
    case ElementType::e8m0:
    case ElementType::u8:
    case ElementType::boolean:
      return 1;
    case ElementType::bf16:
      return 2;
    case ElementType::f32:
    case ElementType::i32:
      return 4;
    case ElementType::i64:
      return 8;
    case ElementType::other:
      return 0;
  }
  return 0;
}

std::unique_ptr<ArraySource> open_arrays(const std::string& path) {
  if (path.ends_with(".safetensors")) {
    return std::make_unique<SafetensorsFile>(path);
  }
  if (path.ends_with(".json")) {
    return std::make_unique<SafetensorsIndex>(path);
  }
  if (path.ends_with(".npz")) {
    return std::make_unique<NpzFile>(path);
  }
  throw Error(ErrorKind::input,
              {.file = path,
               .object = {},
               .problem = "not a kind of file that is imported; pickled files (.pt, .pth, .bin) never "
                          "are, since reading one runs code in it",
               .expected = ".safetensors, an index .json of such files, or .npz",
               .found = "another name"});
}

Tensor tensor_of(const Array& array, DType want, const std::string& file, const std::string& name) {
  Tensor tensor(want, shape_of(array, file, name));
  const ElementType from = array.info.type;
  if (same_bytes(from, want)) {
    std::copy_n(array.bytes.begin(), tensor.bytes(), tensor.raw());
  } else if (want == DType::bf16 && from == ElementType::f32) {
    fill_bf16(array, tensor, file, name);
  } else if (want == DType::f32 && from == ElementType::bf16) {
    fill_f32(array, tensor);
  } else if (want == DType::i32 && from == ElementType::i64) {
    fill_i32(array, tensor, file, name);
  } else {
    throw Error(ErrorKind::input, {.file = file,
                                   .object = name,
                                   .problem = "wrong element type",
                                   .expected = name_of(want),
                                   .found = array.info.type_name});
  }
  return tensor;
}

}  // namespace attndiff
