#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reference/contract/tensor.h"

namespace attndiff {

/// Element types of other programs' files. `other`: a type that no fixture holds.
enum class ElementType : std::uint8_t { bf16, f32, e4m3, e8m0, u8, boolean, i32, i64, other };

/// Bytes of one element; 0 for `other`.
[[nodiscard]] std::size_t size_of(ElementType type) noexcept;

struct ArrayInfo {
  ElementType type = ElementType::other;
  std::string type_name;  ///< as the file writes it
  std::vector<std::int64_t> shape;
};

/// A whole array, row-major, little endian.
struct Array {
  ArrayInfo info;
  std::vector<std::byte> bytes;
};

/// Named arrays of a file, or of several that belong together. Opening one reads names, types and shapes; arrays are
/// read one at a time. Every failure is an Error(input) that names file, array, expected, found.
class ArraySource {
 public:
  ArraySource() = default;
  ArraySource(const ArraySource&) = delete;
  ArraySource& operator=(const ArraySource&) = delete;
  virtual ~ArraySource() = default;

  /// The file that was opened.
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;
  /// Every file that arrays are read from, path() included.
  [[nodiscard]] virtual std::vector<std::string> files() const { return {path()}; }
  /// All names, sorted.
  [[nodiscard]] virtual std::vector<std::string> names() const = 0;
  [[nodiscard]] virtual bool has(const std::string& name) const = 0;
  /// Throws for a name that is not there.
  [[nodiscard]] virtual Array read(const std::string& name) const = 0;
};

/// A .safetensors file, the .json index of a checkpoint in several of them, or an .npz file, told by their names.
/// Nothing is ever unpickled: files of other names are refused, and object arrays inside an npz file as well.
[[nodiscard]] std::unique_ptr<ArraySource> open_arrays(const std::string& path);

/// As a tensor of type `want`, where that loses nothing: bf16 from bf16 and from float32 whose values bf16 holds; f32
/// from both; i32 from both integers; u8 from u8 and booleans. Throws Error(input) that names `file` and `name`.
[[nodiscard]] Tensor tensor_of(const Array& array, DType want, const std::string& file, const std::string& name);

}  // namespace attndiff
