#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "harness/fixture/reader.h"
#include "harness/recipe/generate.h"
#include "harness/recipe/presets.h"
#include "reference/deepseek_v41/sequence.h"

namespace attndiff {
namespace {

/// Collects the index scores and the picks of a run.
class ScoreObserver final : public Observer {
 public:
  [[nodiscard]] Interest interest(const LayerCall&, const StageInfo& stage) override {
    return stage.name == "index_score" || stage.name == "selection" ? Interest::read : Interest::nothing;
  }

  void on_stage(const LayerCall& call, StageView& view, Stream) override {
    const Tensor value = copy_of(view.value);
    if (view.stage.name == "selection") {
      count_choices(call, value);
      return;
    }
    const Tensor exact = to_f32(value);
    for (const float v : exact.as<float>()) {
      scores.push_back(v);
    }
  }

  std::vector<float> scores;
  std::set<std::vector<std::int32_t>>
      choices;  ///< the different selections made where there were more positions than k
  std::size_t choosing_rows = 0;

 private:
  void count_choices(const LayerCall& call, const Tensor& selection) {
    const std::int64_t columns = selection.shape()[1];
    const std::int64_t len = (call.shape.start_pos + call.shape.tokens) / call.role.ratio;
    if (columns >= len) {
      return;
    }
    const auto picks = selection.as<std::int32_t>();
    for (std::int64_t row = 0; row < selection.shape()[0]; ++row) {
      const auto first = picks.begin() + row * columns;
      choices.emplace(first, first + columns);
      ++choosing_rows;
    }
  }
};

void run(const FixtureReader& fixture, Observer& observer) {
  reference::ThreadPool pool(1);
  const deepseek_v41::Steps steps;
  const deepseek_v41::Engine engine{.config = fixture.config(), .steps = steps, .pool = pool};
  deepseek_v41::LayerStack stack(engine, fixture.layers());
  if (fixture.resumes()) {
    std::vector<InitialLayerState> states;
    for (std::size_t layer = 0; layer < fixture.layers().size(); ++layer) {
      states.push_back(fixture.initial_state(layer));
    }
    stack.resume(fixture.steps().front().shape.start_pos, states, fixture.compress_kv_owner(), fixture.index_k_owner());
  }
  for (std::size_t step = 0; step < fixture.steps().size(); ++step) {
    for (std::size_t layer = 0; layer < fixture.layers().size(); ++layer) {
      const Tensor x = fixture.input(step, layer);
      (void)stack.forward(layer, fixture.weights(layer), fixture.steps()[step].shape, 0, x, nullptr, observer);
    }
  }
}

class SmallPreset : public testing::TestWithParam<std::string> {};

TEST_P(SmallPreset, RunsWithScoresThatDecide) {
  const std::string path = testing::TempDir() + "scores-" + GetParam() + ".h5";
  const Recipe recipe = preset(GetParam());
  generate(recipe, path);
  ScoreObserver seen;
  run(FixtureReader(path), seen);
  std::filesystem::remove(path);
  ASSERT_FALSE(seen.scores.empty());
  const auto share = [&](auto is) {
    return static_cast<double>(std::count_if(seen.scores.begin(), seen.scores.end(), is)) /
           static_cast<double>(seen.scores.size());
  };
  EXPECT_EQ(share([](float v) { return std::isfinite(v); }), 1.0);
  // Weights of both signs, so that scores of both signs are common.
  EXPECT_GT(share([](float v) { return v > 0.1F; }), 0.15);
  EXPECT_GT(share([](float v) { return v < -0.1F; }), 0.15);
  EXPECT_GT(seen.choosing_rows, 5U);
  EXPECT_GT(seen.choices.size(), seen.choosing_rows / 2);
  // A score is zero where no head's product is positive, one in 2^index_heads; only those are common ties.
  const double all_negative = std::ldexp(1.0, -static_cast<int>(recipe.config.index_heads));
  const double zeros = share([](float v) { return v == 0; });
  EXPECT_LT(zeros, 1.5 * all_negative + 0.02);
  if (recipe.values.distinct_tokens) {
    EXPECT_GT(zeros, 0.2);
  }
}

std::vector<std::string> small_presets() {
  std::vector<std::string> names = preset_names();
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const std::string& name) {
                               // Released geometry takes gigabytes of weights; 65535 positions take long; stress
                               // presets have other scores, and a test of their own.
                               return name.starts_with("released-") || name.starts_with("micro-65535") ||
                                      name.starts_with("stress-");
                             }),
              names.end());
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Presets, SmallPreset, testing::ValuesIn(small_presets()), test_name);

}  // namespace
}  // namespace attndiff
