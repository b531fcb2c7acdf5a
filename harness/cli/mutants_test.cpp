#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/cli/run_program.h"
#include "harness/fixture/testing.h"

namespace attndiff {
namespace {

using cli_testing::ProgramRun;
using cli_testing::run_attndiff;
using ::testing::HasSubstr;

TEST(Mutants, ListsThemWithoutRunningAny) {
  const ProgramRun run = run_attndiff("mutants --list");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("rectifier-dropped"));
  EXPECT_EQ(run.output.find("killed"), std::string::npos);
}

TEST(Mutants, RunsTheNamedOnesAndWritesTheMatrix) {
  const fixture_testing::TemporaryFolder folder;
  const ProgramRun run = run_attndiff(
      "mutants --threads 1 --only rectifier-dropped --only window-row-reciprocal --json " + folder.file("matrix.json"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("1 of 1 faults killed at their stage, 1 of 1 equivalents pass"));
  const auto json = nlohmann::json::parse(fixture_testing::read_bytes(folder.file("matrix.json")));
  EXPECT_EQ(json.at("schema"), "attndiff-mutants/1");
  ASSERT_EQ(json.at("mutants").size(), 2U);
  EXPECT_EQ(json["mutants"][0].at("outcome"), "killed");
  EXPECT_EQ(json["mutants"][0].at("lockstep").at("stage"), "index_score");
  EXPECT_GT(json["mutants"][0].at("lockstep").at("bound_ratio"), 1.0);
  EXPECT_TRUE(json["mutants"][1].at("lockstep").is_null());
}

TEST(Mutants, ACandidateThatEndsOrStopsItsProcessIsCrashedWhereItWas) {
  const fixture_testing::TemporaryFolder folder;
  const ProgramRun run = run_attndiff(
      "mutants --threads 1 --only dies-of-a-signal --only exits-with-success --only never-returns --json " +
      folder.file("matrix.json"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("3 of 3 faults killed at their stage"));
  const auto json = nlohmann::json::parse(fixture_testing::read_bytes(folder.file("matrix.json")));
  ASSERT_EQ(json.at("mutants").size(), 3U);
  const auto& first = json["mutants"][0].at("free");
  EXPECT_EQ(first.at("verdict"), "crashed");
  EXPECT_EQ(first.at("stage"), "kv");
  EXPECT_GT(first.at("step"), 0);
  EXPECT_THAT(first.at("reason").get<std::string>(), HasSubstr("after it offered kv_pre, before kv"));
  EXPECT_THAT(json["mutants"][1].at("free").at("reason").get<std::string>(), HasSubstr("ended with exit status 0"));
  EXPECT_THAT(json["mutants"][2].at("free").at("reason").get<std::string>(), HasSubstr("did not return within 2 s"));
}

TEST(Mutants, RandomFixturesCountFromTheSeed) {
  const ProgramRun run = run_attndiff("mutants --random 3 --seed 5");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("3 random fixtures from seed 5"));
  EXPECT_THAT(run.output, HasSubstr("correct implementations: 0 with a false failure"));
  EXPECT_THAT(run.output, HasSubstr("0 false passes, 0 errors"));
}

TEST(Mutants, ASeedNeedsRandomFixtures) { EXPECT_EQ(run_attndiff("mutants --seed 5").exit_code, 2); }

TEST(Mutants, AnUnknownNameIsWrongUsage) {
  const ProgramRun run = run_attndiff("mutants --only no-such-fault");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("no-such-fault"));
}

}  // namespace
}  // namespace attndiff
