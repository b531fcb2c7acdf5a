#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "reference/contract/bfloat16.h"

namespace attndiff {

/// Element types that cross the contract. e4m3 and e8m0 are stored codes (one byte each).
enum class DType : std::uint8_t { bf16, f32, i32, u8, e4m3 };

[[nodiscard]] std::size_t size_of(DType dtype) noexcept;
[[nodiscard]] const char* name_of(DType dtype) noexcept;

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<Bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};

/// Extents of a tensor of rank 0 to 4, outermost first (row-major).
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t operator[](std::size_t axis) const noexcept { return extents_.at(axis); }
  [[nodiscard]] std::span<const std::int64_t> extents() const noexcept { return {extents_.data(), rank_}; }
  /// Number of elements (1 for rank 0).
  [[nodiscard]] std::int64_t count() const noexcept;
  /// Row-major strides, in elements.
  [[nodiscard]] Shape strides() const;
  /// "[3, 4]".
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  std::size_t rank_ = 0;
};

/// Row-major index of element `flat`, as text: "[0, 17, 3]".
[[nodiscard]] std::string index_text(const Shape& shape, std::int64_t flat);

/// Where memory lives.
struct Place {
  enum class Kind : std::uint8_t { host, cuda };
  Kind kind = Kind::host;
  int device = 0;

  friend bool operator==(Place, Place) = default;
};

/// Somebody else's tensor: type, shape, strides (elements) and place. Does not own the memory.
struct TensorView {
  DType dtype = DType::f32;
  Shape shape;
  Shape strides;
  void* data = nullptr;
  Place place;

  [[nodiscard]] std::int64_t count() const noexcept { return shape.count(); }
  [[nodiscard]] bool contiguous() const;
};

/// An owned, contiguous, row-major host tensor. Copies are deep.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled.
  Tensor(DType dtype, const Shape& shape);
  /// Its elements hold nothing in particular until they are written.
  [[nodiscard]] static Tensor unwritten(DType dtype, const Shape& shape);

  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;
  ~Tensor() = default;

  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::int64_t count() const noexcept { return defined() ? shape_.count() : 0; }
  [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(count()) * size_of(dtype_); }
  /// False for a default-constructed tensor, true also for one with no elements.
  [[nodiscard]] bool defined() const noexcept { return data_ != nullptr; }

  [[nodiscard]] std::byte* raw() noexcept { return data_.get(); }
  [[nodiscard]] const std::byte* raw() const noexcept { return data_.get(); }

  /// Typed access; throws Error(internal) when T is not this tensor's element type.
  template <typename T>
  [[nodiscard]] std::span<T> as() {
    require(DTypeOf<T>::value);
    return {reinterpret_cast<T*>(data_.get()), static_cast<std::size_t>(count())};
  }
  template <typename T>
  [[nodiscard]] std::span<const T> as() const {
    require(DTypeOf<T>::value);
    return {reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(count())};
  }

  /// The same elements under another shape of equal count.
  [[nodiscard]] Tensor reshaped(const Shape& shape) &&;

  /// A view of this tensor's host memory; valid while the tensor lives and keeps its storage.
  [[nodiscard]] TensorView view() noexcept;

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte[], Free>;
  enum class Fill : std::uint8_t { zero, none };

  Tensor(DType dtype, const Shape& shape, Fill fill);
  [[nodiscard]] static Memory allocate(std::size_t bytes, Fill fill);
  void require(DType dtype) const;

  DType dtype_ = DType::f32;
  Shape shape_;
  Memory data_;
};

/// Copies a contiguous or strided host view into an owned tensor.
[[nodiscard]] Tensor copy_of(const TensorView& view);

/// Exact float32 values of a bf16 or f32 tensor; integer tensors are converted.
[[nodiscard]] Tensor to_f32(const Tensor& t);

/// Nearest bf16 of a float32 tensor.
[[nodiscard]] Tensor to_bf16(const Tensor& t);

}  // namespace attndiff
