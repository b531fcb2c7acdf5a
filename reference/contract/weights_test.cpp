#include "reference/contract/weights.h"

#include <gtest/gtest.h>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

Weight plain(DType dtype, const Shape& shape) { return {.values = Tensor(dtype, shape), .scales = {}}; }

TEST(LayerWeights, AreFoundByName) {
  LayerWeights weights;
  weights.set("wq_a", plain(DType::bf16, {2, 3}));
  weights.set("sink", plain(DType::f32, {4}));
  EXPECT_EQ(weights.at("wq_a").values.shape(), (Shape{2, 3}));
  EXPECT_EQ(weights.at("sink").values.shape(), (Shape{4}));
  EXPECT_EQ(weights.all().size(), 2U);
}

TEST(LayerWeights, SettingTwiceKeepsTheLast) {
  LayerWeights weights;
  weights.set("sink", plain(DType::f32, {4}));
  weights.set("sink", plain(DType::f32, {5}));
  EXPECT_EQ(weights.at("sink").values.shape(), (Shape{5}));
  EXPECT_EQ(weights.all().size(), 1U);
}

TEST(LayerWeights, AMissingOneIsNamed) {
  LayerWeights weights;
  weights.set("sink", plain(DType::f32, {4}));
  try {
    (void)weights.at("comp_wkv");
    FAIL() << "a weight that was never set was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_NE(error.details().problem.find("comp_wkv"), std::string::npos);
  }
}

TEST(LayerWeights, BytesCountValuesAndScales) {
  LayerWeights weights;
  weights.set("wq_b", plain(DType::bf16, {3, 5}));                                                      // 30
  weights.set("q_norm", plain(DType::f32, {5}));                                                        // 20
  weights.set("wq_a", {.values = Tensor(DType::e4m3, {33, 64}), .scales = Tensor(DType::u8, {2, 2})});  // 2112 + 4
  EXPECT_EQ(weights.bytes(), 30U + 20U + 2112U + 4U);
}

TEST(Weight, IsQuantisedWhenItsValuesAreCodes) {
  EXPECT_TRUE((Weight{.values = Tensor(DType::e4m3, {32, 32}), .scales = Tensor(DType::u8, {1, 1})}).quantised());
  EXPECT_FALSE(plain(DType::bf16, {32, 32}).quantised());
}

}  // namespace
}  // namespace attndiff
