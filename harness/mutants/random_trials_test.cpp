#include "harness/mutants/random_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/backends/cpu.h"
#include "harness/fixture/reader.h"
#include "harness/mutants/fault.h"
#include "harness/mutants/mutant_fixtures.h"
#include "reference/deepseek_v41/steps.h"

namespace attndiff {
namespace {

/// Blocks are tests of their own, so that they run side by side. The sanitized build runs 200 fixtures, others 2,000.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kBlock = 10;
#else
constexpr std::uint64_t kBlock = 100;
#endif
constexpr std::uint64_t kBlocks = 20;
constexpr std::uint64_t kFirstSeed = 1;

MutantFixtures& scratch() {
  static MutantFixtures folder;
  return folder;
}

std::vector<RandomTrial> trials_from(std::uint64_t seed, std::uint64_t count) {
  std::vector<RandomTrial> trials;
  for (std::uint64_t i = 0; i < count; ++i) {
    trials.push_back(run_random_trial(seed + i, scratch().folder()));
  }
  return trials;
}

std::int64_t count_of(const std::vector<RandomTrial>& trials, TrialOutcome outcome) {
  return std::count_if(trials.begin(), trials.end(), [&](const RandomTrial& t) { return t.outcome == outcome; });
}

class RandomFixtures : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomFixtures, NeitherFalseFailureNorFalsePass) {
  const auto trials = trials_from(kFirstSeed + GetParam() * kBlock, kBlock);
  const auto sound = std::count_if(trials.begin(), trials.end(), [](const RandomTrial& t) { return t.sound(); });
  EXPECT_EQ(sound, static_cast<std::int64_t>(kBlock)) << trials_text(trials);
  // Both sides of the claim are tried: faults err certainly in about 60 of 100, and comparisons are made.
  EXPECT_GE(count_of(trials, TrialOutcome::failed), static_cast<std::int64_t>(kBlock / 4)) << trials_text(trials);
  for (const RandomTrial& t : trials) {
    EXPECT_GT(t.comparisons, t.constant) << "seed " << t.seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, RandomFixtures, testing::Range<std::uint64_t>(0, kBlocks));

RandomTrial trial_of(TrialOutcome outcome) {
  RandomTrial trial;
  trial.seed = 7;
  trial.fault = "some-fault";
  trial.outcome = outcome;
  trial.effect = Effect{.step = 0, .layer_id = 3, .stage = "o", .what = "far off"};
  return trial;
}

TEST(RandomTrial, AFalsePassAndAFalseFailureAreNotSound) {
  EXPECT_TRUE(trial_of(TrialOutcome::failed).sound());
  EXPECT_TRUE(trial_of(TrialOutcome::equivalent).sound());
  EXPECT_FALSE(trial_of(TrialOutcome::false_pass).sound());
  EXPECT_FALSE(trial_of(TrialOutcome::error).sound());
  RandomTrial accused = trial_of(TrialOutcome::failed);
  accused.accused.emplace_back("free mode, step 0");
  EXPECT_FALSE(accused.sound());
}

TEST(RandomTrial, TheTextNamesTheSeedWithACommand) {
  const std::string text = trials_text({trial_of(TrialOutcome::false_pass)});
  EXPECT_THAT(text, testing::HasSubstr("attndiff mutants --random 1 --seed 7"));
  EXPECT_THAT(text, testing::HasSubstr("false pass of some-fault: step 0, layer 3, o: far off"));
  EXPECT_THAT(text, testing::HasSubstr("1 false passes"));
}

std::optional<Effect> effect_of(const mutants::MakeBackend& make) {
  const auto reference = make_cpu_backend(1);
  const auto candidate = make(1, "candidate");
  return certain_effect(FixtureReader(scratch().path("tiny")), *reference, *candidate);
}

TEST(CertainEffect, TheReferenceHasNone) { EXPECT_FALSE(effect_of(mutants::with_steps({})).has_value()); }

TEST(CertainEffect, NamesTheFirstStageThatIsWrong) {
  const auto halved = effect_of(mutants::with_stage("og", [](const LayerCall&, TensorView& view) {
    for (Bf16& v : mutants::elements<Bf16>(view)) {
      v = to_bf16(to_float(v) * 0.5F);
    }
  }));
  ASSERT_TRUE(halved.has_value());
  EXPECT_EQ(halved->stage, "og");
  EXPECT_EQ(halved->step, 0U);
}

TEST(CertainEffect, AWithheldStageIsOne) {
  const auto missing = effect_of(mutants::with_unplanned("selection"));
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->stage, "selection");
  EXPECT_EQ(missing->what, "is not planned");
}

}  // namespace
}  // namespace attndiff
