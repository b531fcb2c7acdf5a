#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "harness/backends/cpu.h"
#include "harness/backends/recorded.h"
#include "harness/fixture/testing.h"
#include "harness/mutants/random_perturbation.h"
#include "harness/recipe/generate.h"
#include "harness/recipe/presets.h"
#include "harness/run/coverage.h"
#include "harness/run/record.h"
#include "harness/run/replay.h"

namespace attndiff {
namespace {

using fixture_testing::TemporaryFolder;

std::vector<std::string> stress_presets() {
  std::vector<std::string> names = preset_names();
  names.erase(std::remove_if(names.begin(), names.end(), [](const auto& n) { return !n.starts_with("stress-"); }),
              names.end());
  return names;
}

std::string failures(const FixtureReport& report) {
  std::string text = report.error.value_or("");
  for (const ComparisonRecord& c : report.comparisons) {
    if (c.fails()) {
      text += c.mode + " step " + std::to_string(c.step) + " layer " + std::to_string(c.layer_id) + " " + c.stage +
              ": " + std::string(name_of(c.result.verdict)) + ": " + c.result.reason + "\n";
    }
  }
  for (const std::string& counter : report.uncovered) {
    text += "covers no " + counter + "\n";
  }
  return text;
}

FixtureReport replayed(const std::string& path, std::unique_ptr<Backend> candidate) {
  ReplayBackends backends;
  backends.reference = make_cpu_backend(1);
  backends.candidates.push_back(std::move(candidate));
  ReplayOptions options;
  options.threads = 1;
  return replay_fixture(path, backends, options);
}

class StressPreset : public testing::TestWithParam<std::string> {};

TEST_P(StressPreset, ExercisesWhatItClaimsAndPassesInEveryOrder) {
  const TemporaryFolder folder;
  const std::string path = folder.file("stress.h5");
  const Recipe recipe = preset(GetParam());
  EXPECT_FALSE(parse_must_cover(recipe.must_cover, GetParam()).empty());
  generate(recipe, path);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Draw draw(seed);
    const mutants::Perturbation other = mutants::random_perturbation(draw);
    const FixtureReport report = replayed(path, other.make(1, "other"));
    EXPECT_EQ(failures(report), "") << other.text;
    EXPECT_FALSE(report.comparisons.empty());
  }
}

TEST_P(StressPreset, ReplaysWhatWasRecorded) {
  const TemporaryFolder folder;
  const std::string path = folder.file("stress.h5");
  const std::string recording = folder.file("recorded.h5");
  generate(preset(GetParam()), path);
  const auto backend = make_cpu_backend(1);
  record(path, recording, *backend);
  EXPECT_EQ(failures(replayed(recording, make_recorded_backend())), "");
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Presets, StressPreset, testing::ValuesIn(stress_presets()), test_name);

}  // namespace
}  // namespace attndiff
