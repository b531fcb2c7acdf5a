#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/run_program.h"

namespace attndiff {
namespace {

using cli_testing::ProgramRun;
using cli_testing::run_attndiff;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(GpuMutants, AreListedAnywhereABuildHasThem) {
  const ProgramRun run = run_attndiff("mutants --device cuda --list");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, AnyOf(HasSubstr("missing-stream-wait"), HasSubstr("built without a CUDA toolkit")));
}

TEST(GpuMutants, NeedAGpu) {
  const ProgramRun run = run_attndiff("mutants --device cuda --only illegal-address --only rotary-half-split");
  if (run.exit_code == 3) {
    EXPECT_THAT(run.output, HasSubstr("backend cuda"));
  } else {
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("2 of 2 faults killed at their stage"));
  }
}

TEST(GpuMutants, OnlyTheyHaveReleasedGeometry) {
  const ProgramRun run = run_attndiff("mutants --released");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("--device cuda"));
}

}  // namespace
}  // namespace attndiff
