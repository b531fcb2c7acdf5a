#include "reference/contract/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "reference/contract/error.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace attndiff {
namespace {

/// Tensors of released geometry are hundreds of megabytes and live for one call: in pages of 4 KiB, an eighth of a
/// lockstep replay went into page faults.
void prefer_huge_pages(std::byte* memory, std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kWorthIt = std::size_t{8} << 20U;
  if (bytes < kWorthIt) {
    return;
  }
  const std::size_t before_page = kPage - reinterpret_cast<std::uintptr_t>(memory) % kPage;
  // Only advice: where it is not taken, nothing changes.
  static_cast<void>(madvise(memory + before_page, bytes - before_page, MADV_HUGEPAGE));
#else
  static_cast<void>(memory);
  static_cast<void>(bytes);
#endif
}

}  // namespace

std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::u8:
    case DType::e4m3:
      return 1;
  }
  return 1;
}

const char* name_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f32:
      return "float32";
    case DType::i32:
      return "int32";
    case DType::u8:
      return "uint8";
    case DType::e4m3:
      return "e4m3";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(extents.size()) {
  if (rank_ > kMaxRank) {
    throw Error(ErrorKind::internal, "a tensor has at most 4 axes, not " + std::to_string(rank_));
  }
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

std::int64_t Shape::count() const noexcept {
  return std::accumulate(extents_.begin(), extents_.begin() + static_cast<std::ptrdiff_t>(rank_), std::int64_t{1},
                         std::multiplies<>());
}

Shape Shape::strides() const {
  Shape s = *this;
  std::int64_t step = 1;
  for (std::size_t axis = rank_; axis-- > 0;) {
    s.extents_.at(axis) = step;
    step *= extents_.at(axis);
  }
  return s;
}

std::string Shape::text() const {
  std::string text = "[";
  for (std::size_t axis = 0; axis < rank_; ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(extents_.at(axis));
  }
  return text + "]";
}

bool operator==(const Shape& a, const Shape& b) noexcept {
  return std::equal(a.extents().begin(), a.extents().end(), b.extents().begin(), b.extents().end());
}

std::string index_text(const Shape& shape, std::int64_t flat) {
  const Shape strides = shape.strides();
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(flat / strides[axis]);
    flat %= strides[axis];
  }
  return text + "]";
}

bool TensorView::contiguous() const { return strides == shape.strides(); }

Tensor::Tensor(DType dtype, const Shape& shape) : Tensor(dtype, shape, Fill::zero) {}

Tensor::Tensor(DType dtype, const Shape& shape, Fill fill)
    : dtype_(dtype), shape_(shape), data_(allocate(static_cast<std::size_t>(shape.count()) * size_of(dtype), fill)) {}

Tensor Tensor::unwritten(DType dtype, const Shape& shape) { return {dtype, shape, Fill::none}; }

Tensor::Memory Tensor::allocate(std::size_t bytes, Fill fill) {
  const std::size_t least = std::max<std::size_t>(bytes, 1);  // defined() tells a tensor without elements from none
  Memory memory(static_cast<std::byte*>(fill == Fill::zero ? std::calloc(least, 1) : std::malloc(least)));
  if (!memory) {
    throw std::bad_alloc();
  }
  prefer_huge_pages(memory.get(), bytes);
  return memory;
}

Tensor::Tensor(const Tensor& other) : dtype_(other.dtype_), shape_(other.shape_) {
  if (other.defined()) {
    data_ = allocate(other.bytes(), Fill::none);
    std::memcpy(data_.get(), other.data_.get(), other.bytes());
  }
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) {
    Tensor copy(other);
    *this = std::move(copy);
  }
  return *this;
}

Tensor Tensor::reshaped(const Shape& shape) && {
  if (shape.count() != count()) {
    throw Error(ErrorKind::internal, "cannot reshape " + shape_.text() + " to " + shape.text());
  }
  Tensor t = std::move(*this);
  t.shape_ = shape;
  return t;
}

TensorView Tensor::view() noexcept {
  return TensorView{.dtype = dtype_, .shape = shape_, .strides = shape_.strides(), .data = data_.get(), .place = {}};
}

void Tensor::require(DType dtype) const {
  if (dtype != dtype_) {
    throw Error(ErrorKind::internal,
                std::string("a ") + name_of(dtype_) + " tensor was read as " + std::string(name_of(dtype)));
  }
}

Tensor copy_of(const TensorView& view) {
  if (view.place.kind != Place::Kind::host) {
    throw Error(ErrorKind::internal, "copy_of needs host memory");
  }
  Tensor t = Tensor::unwritten(view.dtype, view.shape);
  const std::size_t element = size_of(view.dtype);
  const auto* source = static_cast<const std::byte*>(view.data);
  if (view.contiguous()) {
    if (t.bytes() > 0) {
      std::memcpy(t.raw(), source, t.bytes());
    }
    return t;
  }
  const Shape steps = view.shape.strides();
  for (std::int64_t flat = 0; flat < t.count(); ++flat) {
    std::int64_t rest = flat;
    std::int64_t from = 0;
    for (std::size_t axis = 0; axis < view.shape.rank(); ++axis) {
      from += (rest / steps[axis]) * view.strides[axis];
      rest %= steps[axis];
    }
    std::memcpy(t.raw() + static_cast<std::size_t>(flat) * element, source + static_cast<std::size_t>(from) * element,
                element);
  }
  return t;
}

Tensor to_f32(const Tensor& t) {
  Tensor result = Tensor::unwritten(DType::f32, t.shape());
  const auto out = result.as<float>();
  const auto convert = [&](auto from, auto f) { std::transform(from.begin(), from.end(), out.begin(), f); };
  switch (t.dtype()) {
    case DType::bf16:
      convert(t.as<Bf16>(), [](Bf16 v) { return to_float(v); });
      return result;
    case DType::f32:
      convert(t.as<float>(), [](float v) { return v; });
      return result;
    case DType::i32:
      convert(t.as<std::int32_t>(), [](std::int32_t v) { return static_cast<float>(v); });
      return result;
    case DType::u8:
      convert(t.as<std::uint8_t>(), [](std::uint8_t v) { return static_cast<float>(v); });
      return result;
    case DType::e4m3:
      break;
  }
  throw Error(ErrorKind::internal, std::string("no float32 values for ") + name_of(t.dtype()));
}

Tensor to_bf16(const Tensor& t) {
  Tensor result = Tensor::unwritten(DType::bf16, t.shape());
  const auto from = t.as<float>();
  std::transform(from.begin(), from.end(), result.as<Bf16>().begin(), [](float v) { return to_bf16(v); });
  return result;
}

}  // namespace attndiff
