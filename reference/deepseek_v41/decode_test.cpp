// A prefill and the same tokens decoded one by one: the two ways through a layer meet up to roundings.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/deepseek_v41/model_test_support.h"

namespace attndiff::deepseek_v41 {
namespace {

/// A flip of one bf16 unit before a quantiser moves an element by up to a code's step; averaged over a row's dimensions
/// and attended rows that stays far below what a wrong position, row or weight does, which is of the row's own size.
constexpr double kFlips = 0.1;

double root_mean_square(std::span<const float> row) {
  double sum = 0;
  for (const float v : row) {
    sum += static_cast<double>(v) * static_cast<double>(v);
  }
  return std::sqrt(sum / static_cast<double>(row.size()));
}

void expect_close(std::span<const float> found, std::span<const float> expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  std::vector<float> difference(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference[i] = found[i] - expected[i];
  }
  EXPECT_LE(root_mean_square(difference), kFlips * root_mean_square(expected)) << what;
}

std::vector<float> cache_values(const RowCache& cache) {
  std::vector<float> values;
  for (const Bf16 v : cache.written_rows()) {
    values.push_back(to_float(v));
  }
  return values;
}

class DecodedLayer : public testing::TestWithParam<std::int64_t> {
 protected:
  static TestModel model(std::int64_t ratio) {
    ModelConfig c = small_config();
    c.index_topk = 24;  // every visible position is selected, so that no near tie decides the outcome
    const bool source = ratio > 0;
    return random_model(c, {{.layer_id = 3, .ratio = ratio, .is_kv_source = source, .is_index_source = source}});
  }
};

TEST_P(DecodedLayer, GivesThePrefillsRows) {
  constexpr std::int64_t kTokens = 13;
  const TestModel m = model(GetParam());
  Session whole(m);
  const Tensor all = to_f32(whole.run(0, prefill(kTokens)).out);
  const auto width = static_cast<std::size_t>(m.config.dim);
  for (const std::int64_t first : {1, 2, 5, 12}) {
    Session parts(m);
    (void)parts.run(0, prefill(first));
    for (std::int64_t position = first; position < kTokens; ++position) {
      const Tensor out = to_f32(parts.run(0, decode(position)).out);
      expect_close(out.as<float>(), all.as<float>().subspan(static_cast<std::size_t>(position) * width, width),
                   "position " + std::to_string(position) + " after a prefill of " + std::to_string(first));
    }
    const LayerState& a = whole.stack().state(0);
    const LayerState& b = parts.stack().state(0);
    expect_close(to_f32(b.ring).as<float>(), to_f32(a.ring).as<float>(), "ring");
    if (GetParam() > 0) {
      EXPECT_EQ(b.latents->written(), kTokens / GetParam());
      EXPECT_EQ(b.index_keys->written(), kTokens / GetParam());
      expect_close(cache_values(*b.latents), cache_values(*a.latents), "latents");
      expect_close(cache_values(*b.index_keys), cache_values(*a.index_keys), "index keys");
    }
  }
}

/// Layers whose groups can be partial.
class DecodedGroups : public DecodedLayer {};

TEST_P(DecodedGroups, LeaveThePartialGroupOfAPrefill) {
  const std::int64_t ratio = GetParam();
  const TestModel m = model(ratio);
  for (std::int64_t tokens = 2; tokens < 10; ++tokens) {
    Session whole(m);
    (void)whole.run(0, prefill(tokens));
    Session parts(m);
    (void)parts.run(0, prefill(1));
    for (std::int64_t position = 1; position < tokens; ++position) {
      (void)parts.run(0, decode(position));
    }
    // Slots behind the partial group are new in the one and left over in the other.
    const auto members = static_cast<std::size_t>(tokens % ratio * m.config.head_dim);
    const auto half = static_cast<std::size_t>(ratio * m.config.head_dim);
    const auto a = whole.stack().state(0).comp_state.as<float>();
    const auto b = parts.stack().state(0).comp_state.as<float>();
    for (const std::size_t begin : {std::size_t{0}, half}) {
      for (std::size_t i = begin; i < begin + members; ++i) {
        ASSERT_NEAR(b[i], a[i], 1e-5) << tokens << " tokens, element " << i;
      }
      for (std::size_t i = begin + members; i < begin + half; ++i) {
        ASSERT_EQ(a[i], begin == 0 ? 0.0F : -std::numeric_limits<float>::infinity())
            << tokens << " tokens, element " << i;
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::int64_t>& ratio) { return "ratio" + std::to_string(ratio.param); }

INSTANTIATE_TEST_SUITE_P(Ratios, DecodedLayer, testing::Values(0, 1, 2, 3, 4), name_of);
INSTANTIATE_TEST_SUITE_P(Ratios, DecodedGroups, testing::Values(2, 3, 4), name_of);

TEST(DecodedStack, SelectsVisiblePositionsOnly) {
  const TestModel m = random_model(small_config(), every_kind());
  Session session(m);
  for (std::int64_t position = 0; position < 20; ++position) {
    const CallShape call = position == 0 ? prefill(7) : decode(6 + position);
    for (std::size_t layer = 0; layer < m.roles.size(); ++layer) {
      Recorder recorder;
      (void)session.run(layer, call, recorder);
      if (!recorder.stages.contains(kSelection)) {
        continue;
      }
      const Tensor& selection = recorder.stages.at(kSelection);
      const std::int64_t columns = selection.shape()[1];
      for (std::int64_t t = 0; t < call.tokens; ++t) {
        const std::int64_t visible = (call.start_pos + t + 1) / m.roles[layer].ratio;
        const auto row = selection.as<std::int32_t>().subspan(static_cast<std::size_t>(t * columns),
                                                              static_cast<std::size_t>(columns));
        const auto present = std::count_if(row.begin(), row.end(), [](std::int32_t p) { return p >= 0; });
        EXPECT_EQ(present, std::min(columns, visible)) << "layer " << layer << ", token " << t;
        for (std::size_t j = 0; j < row.size(); ++j) {
          EXPECT_LT(row[j], visible);
          EXPECT_TRUE(j == 0 || row[j] < 0 || row[j - 1] < row[j]) << "picks ascend, absent ones stand last";
        }
      }
    }
  }
}

}  // namespace
}  // namespace attndiff::deepseek_v41
