#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "harness/cli/run_program.h"
#include "harness/fixture/testing.h"

namespace attndiff {
namespace {

using cli_testing::ProgramRun;
using cli_testing::run_attndiff;
using fixture_testing::read_bytes;
using fixture_testing::TemporaryFolder;
using ::testing::HasSubstr;

const std::string kFixtures = std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures";

TEST(Topk, RecordedCasesAgree) {
  const ProgramRun run = run_attndiff("topk --cases " + kFixtures + "/topk/cases.json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("150 of 150"));
}

TEST(Topk, AChangedCaseFailsAndNoCaseIsNoPass) {
  const TemporaryFolder folder;
  fixture_testing::write_bytes(folder.file("wrong.json"),
                               R"({"cases": [{"name": "wrong", "k": 1, "values": [1, 2, 3], "index_set": [0]}]})");
  EXPECT_EQ(run_attndiff("topk --cases " + folder.file("wrong.json")).exit_code, 1);
  fixture_testing::write_bytes(folder.file("none.json"), R"({"cases": []})");
  EXPECT_EQ(run_attndiff("topk --cases " + folder.file("none.json")).exit_code, 4);
  EXPECT_EQ(run_attndiff("topk --cases " + folder.file("absent.json")).exit_code, 2);
}

TEST(Inspect, SaysWhatIsInAFixture) {
  const ProgramRun run = run_attndiff("inspect " + kFixtures + "/mid-candidates.h5");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  for (const char* part : {"torch 2.11.0+cu130 cpu", "two-level selection binds", "ratio 2 kv+index source",
                           "ratio 1 index source with candidates", "prefill at 0, 150 tokens", "candidates   6"}) {
    EXPECT_THAT(run.output, HasSubstr(part));
  }
  EXPECT_EQ(run_attndiff("inspect " + kFixtures + "/absent.h5").exit_code, 2);
}

TEST(Generate, TwiceGivesIdenticalBytesAndReleasedLayersAreSmall) {
  const TemporaryFolder folder;
  for (const char* preset : {"micro", "released-kv2"}) {
    for (const char* copy : {"a.h5", "b.h5"}) {
      ASSERT_EQ(run_attndiff(std::string("generate --preset ") + preset + " -o " + folder.file(copy)).exit_code, 0);
    }
    EXPECT_EQ(read_bytes(folder.file("a.h5")), read_bytes(folder.file("b.h5"))) << preset;
  }
  EXPECT_LT(std::filesystem::file_size(folder.file("a.h5")), 100'000U);
}

TEST(Generate, WrongUsageExitsWith2) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_attndiff("generate -o " + folder.file("x.h5")).exit_code, 2);
  EXPECT_EQ(run_attndiff("generate --preset micro").exit_code, 2);
  EXPECT_EQ(run_attndiff("generate --preset nonsense -o " + folder.file("x.h5")).exit_code, 2);
  EXPECT_EQ(run_attndiff("generate --preset micro -o /no/such/folder/x.h5").exit_code, 5);
}

class RecordThenReplay : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordThenReplay, Passes) {
  const TemporaryFolder folder;
  const std::string made = folder.file("made.h5");
  const std::string recorded = folder.file("recorded.h5");
  ASSERT_EQ(run_attndiff(std::string("generate --preset ") + GetParam() + " -o " + made).exit_code, 0);
  const ProgramRun record = run_attndiff("record " + made + " -o " + recorded);
  ASSERT_EQ(record.exit_code, 0) << record.output;
  const ProgramRun replay = run_attndiff("replay --reference cpu --candidate recorded " + recorded);
  EXPECT_EQ(replay.exit_code, 0) << replay.output;
  EXPECT_THAT(replay.output, HasSubstr("comp_state")) << "every stage is recorded";
  EXPECT_THAT(run_attndiff("replay --reference cpu --candidate recorded " + made).output, HasSubstr("nothing"));
}

INSTANTIATE_TEST_SUITE_P(Presets, RecordThenReplay,
                         ::testing::Values("micro", "micro-own", "micro-4095", "micro-65535", "micro-4095-own",
                                           "micro-e4m3", "micro-ratio4", "tiny", "tiny-resume", "mid"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Values in the place of rules change no result, and the same command gives the same bytes.
TEST(Record, StoredValuesGiveTheResultsOfTheirRules) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& arguments) { ASSERT_EQ(run_attndiff(arguments).exit_code, 0) << arguments; };
  run("generate --preset micro-own -o " + folder.file("rules.h5"));
  run("generate --preset micro-own --stored -o " + folder.file("values.h5"));
  run("generate --preset micro-own --stored -o " + folder.file("again.h5"));
  EXPECT_EQ(fixture_testing::read_bytes(folder.file("values.h5")),
            fixture_testing::read_bytes(folder.file("again.h5")));
  run("validate " + folder.file("values.h5"));
  run("record " + folder.file("rules.h5") + " -o " + folder.file("a.h5"));
  run("record --stored " + folder.file("rules.h5") + " -o " + folder.file("b.h5"));
  run("record " + folder.file("values.h5") + " -o " + folder.file("c.h5"));
  EXPECT_EQ(fixture_testing::read_bytes(folder.file("b.h5")), fixture_testing::read_bytes(folder.file("c.h5")));
  EXPECT_GT(std::filesystem::file_size(folder.file("b.h5")), std::filesystem::file_size(folder.file("a.h5")));
  // Each one's inputs with the other's results.
  run("replay --reference cpu --candidate recorded " + folder.file("a.h5") + " " + folder.file("b.h5"));
}

TEST(Record, ARefusedFixtureLeavesNothingBehind) {
  const TemporaryFolder folder;
  const std::string broken = folder.copy(kFixtures + "/tiny-ties.h5", "broken.h5");
  { fixture_testing::FixtureEditor(broken).remove("/layers/0003/weights/wkv"); }
  EXPECT_EQ(run_attndiff("record " + broken + " -o " + folder.file("out.h5")).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.h5")));
}

TEST(Doctor, KeepsTheComparatorsContract) {
  const ProgramRun run = run_attndiff("doctor --contract");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("NaN"));
}

TEST(Doctor, SaysWhatCanRunHere) {
  const ProgramRun run = run_attndiff("doctor");
  EXPECT_EQ(run.exit_code, 0);
  for (const char* part : {"attndiff 0.1.0", "Eigen", "HDF5", "backend cpu", "backend cuda", "backend recorded"}) {
    EXPECT_THAT(run.output, HasSubstr(part));
  }
}

}  // namespace
}  // namespace attndiff
