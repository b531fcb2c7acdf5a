#include "reference/contract/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

using testing::Each;
using testing::ElementsAre;

Tensor counting(const Shape& shape) {
  Tensor t(DType::i32, shape);
  const auto values = t.as<std::int32_t>();
  std::iota(values.begin(), values.end(), 0);
  return t;
}

/// Whether `call` throws Error of that kind.
template <typename Call>
bool throws_kind(ErrorKind kind, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind() == kind;
  }
  return false;
}

TEST(Shape, CountsItsElements) {
  EXPECT_EQ((Shape{2, 3, 4}).count(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).count(), 0);
  EXPECT_EQ(Shape{}.count(), 1);
  EXPECT_EQ((Shape{2, 3}).rank(), 2U);
  EXPECT_EQ((Shape{2, 3})[1], 3);
}

TEST(Shape, StridesAreRowMajor) {
  EXPECT_EQ((Shape{2, 3, 4, 5}).strides(), (Shape{60, 20, 5, 1}));
  EXPECT_EQ((Shape{7}).strides(), (Shape{1}));
}

TEST(Shape, TextListsExtentsOutermostFirst) {
  EXPECT_EQ((Shape{3, 40}).text(), "[3, 40]");
  EXPECT_EQ(Shape{}.text(), "[]");
}

TEST(Shape, EqualityIncludesTheRank) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
}

TEST(Shape, RefusesAFifthAxis) {
  EXPECT_TRUE(throws_kind(ErrorKind::internal, [] { (void)Shape{1, 1, 1, 1, 1}; }));
  const std::array<std::int64_t, 4> four{1, 2, 3, 4};
  EXPECT_EQ(Shape(std::span<const std::int64_t>(four)).rank(), 4U);
}

TEST(IndexText, UnravelsARowMajorIndex) {
  EXPECT_EQ(index_text({2, 3, 4}, 17), "[1, 1, 1]");
  EXPECT_EQ(index_text({2, 3, 4}, 23), "[1, 2, 3]");
  EXPECT_EQ(index_text({5}, 3), "[3]");
}

TEST(DTypes, HaveSizesAndNames) {
  EXPECT_EQ(size_of(DType::bf16), 2U);
  EXPECT_EQ(size_of(DType::f32), 4U);
  EXPECT_EQ(size_of(DType::i32), 4U);
  EXPECT_EQ(size_of(DType::u8), 1U);
  EXPECT_EQ(size_of(DType::e4m3), 1U);
  EXPECT_STREQ(name_of(DType::bf16), "bfloat16");
  EXPECT_STREQ(name_of(DType::f32), "float32");
  EXPECT_STREQ(name_of(DType::i32), "int32");
  EXPECT_STREQ(name_of(DType::u8), "uint8");
  EXPECT_STREQ(name_of(DType::e4m3), "e4m3");
}

bool all_are(float value, const Tensor& t) {
  const auto values = t.as<float>();
  return std::all_of(values.begin(), values.end(), [&](float v) { return v == value; });
}

TEST(TensorMemory, UnwrittenHasTheFormAndTakesValues) {
  for (const Shape& shape : {Shape{3, 5}, Shape{0, 5}, Shape{512, 8192}}) {  // 16 MiB: in huge pages, where there are
    Tensor t = Tensor::unwritten(DType::f32, shape);
    EXPECT_TRUE(t.defined());
    EXPECT_EQ(t.shape(), shape);
    EXPECT_EQ(t.bytes(), static_cast<std::size_t>(shape.count()) * 4);
    std::fill(t.as<float>().begin(), t.as<float>().end(), 7.0F);
    EXPECT_TRUE(all_are(7.0F, Tensor(t)));
  }
}

TEST(TensorMemory, ALargeOneStartsAtZeroToo) {
  const Shape shape{512, 8192};
  {
    Tensor used = Tensor::unwritten(DType::f32, shape);
    std::fill(used.as<float>().begin(), used.as<float>().end(), 7.0F);
  }
  const Tensor fresh(DType::f32, shape);
  EXPECT_TRUE(all_are(0.0F, fresh));
}

TEST(Tensor, StartsZeroFilled) {
  const Tensor t(DType::f32, {3, 5});
  EXPECT_EQ(t.count(), 15);
  EXPECT_EQ(t.bytes(), 60U);
  EXPECT_THAT(t.as<float>(), Each(0.0F));
}

TEST(Tensor, AnEmptyOneIsDefinedAndADefaultOneIsNot) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.count(), 0);
  const Tensor empty(DType::i32, {4, 0});
  EXPECT_TRUE(empty.defined());
  EXPECT_EQ(empty.count(), 0);
  const Tensor& copy = Tensor(empty);
  EXPECT_TRUE(copy.defined());
  EXPECT_EQ(copy.shape(), (Shape{4, 0}));
}

TEST(Tensor, CopiesAreDeep) {
  Tensor a = counting({2, 2});
  Tensor b = a;
  Tensor c;
  c = a;
  a.as<std::int32_t>()[0] = 9;
  EXPECT_THAT(b.as<std::int32_t>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(c.as<std::int32_t>(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(c.shape(), (Shape{2, 2}));
}

TEST(Tensor, MovesTakeTheStorage) {
  Tensor a = counting({3});
  const std::byte* storage = a.raw();
  const Tensor b = std::move(a);
  EXPECT_EQ(b.raw(), storage);
  EXPECT_EQ(b.count(), 3);
}

TEST(Tensor, RefusesAccessAsAnotherType) {
  Tensor t(DType::bf16, {2});
  EXPECT_TRUE(throws_kind(ErrorKind::internal, [&] { (void)t.as<float>(); }));
  EXPECT_TRUE(throws_kind(ErrorKind::internal, [&] { (void)std::as_const(t).as<std::uint8_t>(); }));
  EXPECT_EQ(t.as<Bf16>().size(), 2U);
  Tensor codes(DType::e4m3, {2});
  EXPECT_TRUE(throws_kind(ErrorKind::internal, [&] { (void)codes.as<std::uint8_t>(); }));
}

TEST(Tensor, ReshapesToAnEqualCountOnly) {
  const Tensor t = counting({2, 6}).reshaped({3, 2, 2});
  EXPECT_EQ(t.shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(t.as<std::int32_t>()[11], 11);
  EXPECT_TRUE(throws_kind(ErrorKind::internal, [] { (void)counting({2, 6}).reshaped({13}); }));
}

TEST(Tensor, ViewSharesItsMemory) {
  Tensor t = counting({2, 3});
  const TensorView view = t.view();
  EXPECT_EQ(view.shape, (Shape{2, 3}));
  EXPECT_EQ(view.strides, (Shape{3, 1}));
  EXPECT_EQ(view.dtype, DType::i32);
  EXPECT_EQ(view.place.kind, Place::Kind::host);
  EXPECT_TRUE(view.contiguous());
  static_cast<std::int32_t*>(view.data)[4] = 77;
  EXPECT_EQ(t.as<std::int32_t>()[4], 77);
}

TEST(CopyOf, FollowsStrides) {
  Tensor t = counting({2, 3});
  TensorView transposed = t.view();
  transposed.shape = {3, 2};
  transposed.strides = {1, 3};
  EXPECT_FALSE(transposed.contiguous());
  const Tensor copy = copy_of(transposed);
  EXPECT_EQ(copy.shape(), (Shape{3, 2}));
  EXPECT_THAT(copy.as<std::int32_t>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(CopyOf, TakesAColumnOfALargerTensor) {
  Tensor t = counting({2, 3, 2});
  TensorView column = t.view();
  column.shape = {2, 2};  // [:, 1, :]
  column.strides = {6, 1};
  column.data = t.as<std::int32_t>().subspan(2).data();
  EXPECT_THAT(copy_of(column).as<std::int32_t>(), ElementsAre(2, 3, 8, 9));
}

TEST(CopyOf, RepeatsAlongAStrideOfZero) {
  Tensor t = counting({2});
  TensorView repeated = t.view();
  repeated.shape = {3, 2};
  repeated.strides = {0, 1};
  EXPECT_THAT(copy_of(repeated).as<std::int32_t>(), ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(CopyOf, IsIndependentOfItsSource) {
  Tensor t = counting({2});
  const Tensor copy = copy_of(t.view());
  t.as<std::int32_t>()[1] = 5;
  EXPECT_THAT(copy.as<std::int32_t>(), ElementsAre(0, 1));
}

TEST(CopyOf, TakesNothingFromAnEmptyView) {
  const Tensor copy = copy_of({.dtype = DType::i32, .shape = {3, 0}, .strides = {5, 1}, .data = nullptr, .place = {}});
  EXPECT_TRUE(copy.defined());
  EXPECT_EQ(copy.shape(), (Shape{3, 0}));
}

TEST(CopyOf, RefusesDeviceMemory) {
  Tensor t = counting({2});
  TensorView view = t.view();
  view.place.kind = Place::Kind::cuda;
  EXPECT_TRUE(throws_kind(ErrorKind::internal, [&] { (void)copy_of(view); }));
}

TEST(ToF32, KeepsValuesOfEveryNumericType) {
  Tensor b(DType::bf16, {2});
  b.as<Bf16>()[0] = Bf16{0x4049};  // 3.140625
  b.as<Bf16>()[1] = Bf16{0xbf80};
  EXPECT_THAT(to_f32(b).as<float>(), ElementsAre(3.140625F, -1.0F));
  EXPECT_THAT(to_f32(counting({3})).as<float>(), ElementsAre(0.0F, 1.0F, 2.0F));
  Tensor mask(DType::u8, {2, 1});
  mask.as<std::uint8_t>()[1] = 1;
  EXPECT_THAT(to_f32(mask).as<float>(), ElementsAre(0.0F, 1.0F));
  EXPECT_EQ(to_f32(mask).shape(), (Shape{2, 1}));
  Tensor f(DType::f32, {1});
  f.as<float>()[0] = 0.1F;
  EXPECT_THAT(to_f32(f).as<float>(), ElementsAre(0.1F));
}

TEST(ToF32, HasNoValuesForCodesWithoutTheirScales) {
  EXPECT_TRUE(throws_kind(ErrorKind::internal, [] { (void)to_f32(Tensor(DType::e4m3, {2})); }));
}

TEST(ToBf16, RoundsAFloat32Tensor) {
  Tensor f(DType::f32, {2});
  f.as<float>()[0] = 1.0F + 0x3p-9F;  // three quarters of a unit above 1
  f.as<float>()[1] = -2.0F;
  EXPECT_THAT(to_bf16(f).as<Bf16>(), ElementsAre(Bf16{0x3f81}, Bf16{0xc000}));
  EXPECT_TRUE(throws_kind(ErrorKind::internal, [] { (void)to_bf16(Tensor(DType::i32, {2})); }));
}

}  // namespace
}  // namespace attndiff
