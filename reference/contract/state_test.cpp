#include "reference/contract/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

using testing::Each;
using testing::ElementsAre;

Bf16 b(int bits) { return Bf16{static_cast<std::uint16_t>(bits)}; }

template <typename Call>
ErrorKind kind_thrown(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::output;
}

TEST(RowCache, GrowsWithWhatIsWritten) {
  RowCache cache(1'000'000, 2);
  EXPECT_EQ(cache.capacity(), 1'000'000);
  EXPECT_EQ(cache.width(), 2);
  EXPECT_EQ(cache.written(), 0);
  cache.write(0, std::vector{b(1), b(2), b(3), b(4)});
  EXPECT_EQ(cache.written(), 2);
  cache.write(2, std::vector{b(5), b(6)});
  EXPECT_THAT(cache.written_rows(), ElementsAre(b(1), b(2), b(3), b(4), b(5), b(6)));
}

TEST(RowCache, RewritesRowsInPlace) {
  RowCache cache(4, 1);
  cache.write(0, std::vector{b(1), b(2), b(3)});
  cache.write(1, std::vector{b(9)});
  EXPECT_THAT(cache.written_rows(), ElementsAre(b(1), b(9), b(3)));
}

TEST(RowCache, SkippedRowsAreZero) {
  RowCache cache(4, 1);
  cache.write(2, std::vector{b(7)});
  EXPECT_THAT(cache.written_rows(), ElementsAre(b(0), b(0), b(7)));
}

TEST(RowCache, ReadsZeroBehindTheWrittenRows) {
  RowCache cache(4, 2);
  cache.write(0, std::vector{b(1), b(2)});
  std::vector<Bf16> out(6, b(99));
  cache.read(3, out);
  EXPECT_THAT(out, ElementsAre(b(1), b(2), b(0), b(0), b(0), b(0)));
}

TEST(RowCache, ReadsFewerRowsThanWereWritten) {
  RowCache cache(4, 1);
  cache.write(0, std::vector{b(1), b(2), b(3)});
  std::vector<Bf16> out(2);
  cache.read(2, out);
  EXPECT_THAT(out, ElementsAre(b(1), b(2)));
}

TEST(RowCache, RefusesToPassItsCapacity) {
  RowCache cache(2, 1);
  cache.write(1, std::vector{b(1)});
  EXPECT_EQ(kind_thrown([&] { cache.write(2, std::vector{b(1)}); }), ErrorKind::refused);
  EXPECT_EQ(kind_thrown([&] { cache.write(1, std::vector{b(1), b(2)}); }), ErrorKind::refused);
  EXPECT_EQ(kind_thrown([&] { cache.write(-1, std::vector{b(1)}); }), ErrorKind::refused);
  std::vector<Bf16> out(3);
  EXPECT_EQ(kind_thrown([&] { cache.read(3, out); }), ErrorKind::refused);
  EXPECT_THAT(cache.written_rows(), ElementsAre(b(0), b(1))) << "a refused write left something behind";
}

TEST(RowCache, MayHoldNoRowsButNeedsAWidth) {
  EXPECT_EQ(RowCache(0, 3).written(), 0);
  EXPECT_EQ(kind_thrown([] { RowCache(3, 0); }), ErrorKind::internal);
  EXPECT_EQ(kind_thrown([] { RowCache(-1, 3); }), ErrorKind::internal);
}

ModelConfig config() {
  ModelConfig c;
  c.window = 3;
  c.head_dim = 4;
  c.index_head_dim = 5;
  c.max_seq = 11;
  return c;
}

TEST(NewState, OfAWindowOnlyLayerIsAZeroRing) {
  const LayerState state = new_state(config(), {.ratio = 0});
  EXPECT_EQ(state.ring.shape(), (Shape{3, 4}));
  EXPECT_THAT(state.ring.as<Bf16>(), Each(Bf16{}));
  EXPECT_FALSE(state.comp_state.defined());
  EXPECT_EQ(state.latents, nullptr);
  EXPECT_EQ(state.index_keys, nullptr);
}

TEST(NewState, PartialGroupStartsAtZeroAndMinusInfinity) {
  const LayerState state = new_state(config(), {.ratio = 2, .is_kv_source = true, .is_index_source = true});
  ASSERT_EQ(state.comp_state.shape(), (Shape{2, 2, 4}));
  const auto values = state.comp_state.as<float>();
  EXPECT_THAT(values.first(8), Each(0.0F));
  EXPECT_THAT(values.subspan(8), Each(-std::numeric_limits<float>::infinity()));
  EXPECT_EQ(state.latents->capacity(), 5);  // 11 / 2
  EXPECT_EQ(state.latents->width(), 4);
  EXPECT_EQ(state.index_keys->capacity(), 5);
  EXPECT_EQ(state.index_keys->width(), 5);
}

TEST(NewState, HasOnlyWhatTheLayersKindNeeds) {
  const LayerState no_index = new_state(config(), {.ratio = 2, .is_kv_source = true});
  EXPECT_NE(no_index.latents, nullptr);
  EXPECT_EQ(no_index.index_keys, nullptr);
  const LayerState ratio_1 = new_state(config(), {.ratio = 1, .is_kv_source = true, .is_index_source = true});
  EXPECT_FALSE(ratio_1.comp_state.defined()) << "a group of one token is never partial";
  EXPECT_EQ(ratio_1.latents->capacity(), 11);
  const LayerState reader = new_state(config(), {.ratio = 2, .is_index_source = true});
  EXPECT_FALSE(reader.comp_state.defined());
  EXPECT_EQ(reader.latents, nullptr);
  EXPECT_EQ(reader.index_keys, nullptr);
}

}  // namespace
}  // namespace attndiff
