// Results that change from run to run: found, and the stage that changed first is named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/backends/cpu.h"
#include "harness/backends/recorded.h"
#include "harness/mutants/faulty_backend.h"
#include "harness/run/replay.h"

namespace attndiff {
namespace {

const std::string kFixture = std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures/tiny-short-prefill.h5";

FixtureReport repeated(std::unique_ptr<Backend> candidate, int repeat, ReplayMode mode = ReplayMode::both) {
  ReplayBackends backends;
  backends.reference = make_cpu_backend(1);
  backends.candidates.push_back(std::move(candidate));
  ReplayOptions options;
  options.repeat = repeat;
  options.mode = mode;
  options.threads = 1;
  return replay_fixture(kFixture, backends, options);
}

std::vector<ComparisonRecord> of_mode(const FixtureReport& report, const std::string& mode) {
  std::vector<ComparisonRecord> records;
  std::copy_if(report.comparisons.begin(), report.comparisons.end(), std::back_inserter(records),
               [&](const ComparisonRecord& r) { return r.mode == mode; });
  return records;
}

/// A candidate whose sequence number `wrong` (from 1, in the order in which they are started) flips the lowest bit of
/// one element of q in each decode step.
std::unique_ptr<Backend> unsteady(int wrong) {
  const auto started = std::make_shared<int>(0);
  const auto make = mutants::with_stage("q", [started, wrong]() -> mutants::StageChange {
    const bool flips = ++*started == wrong;
    return [flips](const LayerCall& call, TensorView& view) {
      if (flips && !call.shape.prefill()) {
        mutants::elements<Bf16>(view).front().bits ^= 1U;
      }
      return true;
    };
  });
  return make(1, "unsteady");
}

TEST(Repeat, EqualRunsPassInEveryStage) {
  const FixtureReport report = repeated(make_cpu_backend(1), 3);
  EXPECT_EQ(report.verdict, Verdict::pass) << report.error.value_or("");
  const auto counted = [&](const char* mode) {
    const auto records = of_mode(report, mode);
    return std::count_if(records.begin(), records.end(), [](const auto& r) { return r.result.counted; });
  };
  EXPECT_GT(counted("repeat"), 0);
  EXPECT_EQ(counted("repeat"), counted("free"));
}

TEST(Repeat, OneRunIsNotRepeated) { EXPECT_TRUE(of_mode(repeated(make_cpu_backend(1), 1), "repeat").empty()); }

TEST(Repeat, AChangeOfOneBitNamesTheStageThatChangedFirst) {
  // Started: the free run, the production run, then the repetitions.
  const FixtureReport report = repeated(unsteady(4), 3, ReplayMode::free);
  EXPECT_EQ(report.verdict, Verdict::fail);
  const auto again = of_mode(report, "repeat");
  const auto first =
      std::find_if(again.begin(), again.end(), [](const auto& r) { return fails_run(r.result.verdict); });
  ASSERT_NE(first, again.end());
  EXPECT_EQ(first->stage, "q");
  EXPECT_EQ(first->step, 1U);
  EXPECT_EQ(first->result.mismatches, 1);
  EXPECT_THAT(first->result.reason, testing::HasSubstr("run 3 of 3 differs from the first"));
  EXPECT_THAT(first->repro, testing::HasSubstr("--mode free"));
  EXPECT_THAT(first->repro, testing::HasSubstr("--repeat 3"));
}

TEST(Repeat, ASignOfZeroIsAChange) {
  const auto started = std::make_shared<int>(0);
  const auto make = mutants::with_stage("q", [started]() -> mutants::StageChange {
    const bool negative = ++*started == 3;
    return [negative](const LayerCall&, TensorView& view) {
      mutants::elements<Bf16>(view).front() = to_bf16(negative ? -0.0F : 0.0F);
      return true;
    };
  });
  const auto again = of_mode(repeated(make(1, "zeros"), 2, ReplayMode::free), "repeat");
  const auto first =
      std::find_if(again.begin(), again.end(), [](const auto& r) { return fails_run(r.result.verdict); });
  ASSERT_NE(first, again.end());
  EXPECT_EQ(first->stage, "q");
  EXPECT_THAT(first->result.reason, testing::HasSubstr("other bits for equal values"));
}

TEST(Repeat, WhatCannotBeRepeatedIsWrongUsage) {
  EXPECT_THROW(static_cast<void>(repeated(make_recorded_backend(), 2)), Error);
  EXPECT_THROW(static_cast<void>(repeated(make_cpu_backend(1), 2, ReplayMode::lockstep)), Error);
}

}  // namespace
}  // namespace attndiff
