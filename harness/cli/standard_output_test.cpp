// Standard output that cannot be written, and options whose values are out of range, from the outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/cli/run_program.h"
#include "harness/fixture/testing.h"

namespace attndiff {
namespace {

using cli_testing::ProgramRun;
using cli_testing::run_attndiff;
using fixture_testing::FixtureEditor;
using fixture_testing::read_bytes;
using fixture_testing::TemporaryFolder;
using ::testing::HasSubstr;

const std::string kFixtures = std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures";
const std::string kFixture = kFixtures + "/tiny-ties.h5";

class Unwritable : public ::testing::TestWithParam<const char*> {};

TEST_P(Unwritable, ExitsWith5) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "no /dev/full here";
  }
  const TemporaryFolder folder;
  const std::string errors = folder.file("errors");
  for (const std::string command :
       {"--help", "--version", "replay --help", "doctor", "doctor --contract", "mutants --list",
        "generate --list-presets", "inspect FIXTURE", "validate FIXTURE", "topk --cases CASES",
        "replay --candidate recorded --layers 0 --steps 0 FIXTURE", "replay --candidate recorded -v FIXTURE"}) {
    std::string words = command;
    for (const auto& [name, file] :
         {std::pair{"FIXTURE", kFixture}, std::pair{"CASES", kFixtures + "/topk/cases.json"}}) {
      if (const std::size_t place = words.find(name); place != std::string::npos) {
        words.replace(place, std::string(name).size(), file);
      }
    }
    // The number sign keeps errors apart from what run_attndiff() redirects.
    const ProgramRun run = run_attndiff(words + " 2>" + errors + " >" + GetParam() + " #");
    EXPECT_EQ(run.exit_code, 5) << command;
    EXPECT_THAT(read_bytes(errors), HasSubstr("standard output cannot be written")) << command;
  }
}

INSTANTIATE_TEST_SUITE_P(StandardOutput, Unwritable, ::testing::Values("/dev/full", "&-"),
                         [](const auto& test) { return *test.param == '/' ? "Full" : "Closed"; });

TEST(StandardOutput, AFailedComparisonOutweighsIt) {
  const TemporaryFolder folder;
  const std::string path = folder.copy(kFixture, "broken.h5");
  {
    FixtureEditor file(path);
    file.change("/steps/0002/layers/0003/expected/o", [](std::size_t, double v) { return -v; });
  }
  EXPECT_EQ(run_attndiff("replay -v --candidate recorded " + path + " >/dev/full").exit_code, 1);
  EXPECT_EQ(run_attndiff("replay -v --candidate recorded " + path + " 2>/dev/null >/dev/full #").exit_code, 1);
}

TEST(StandardOutput, ClosedItLeavesWhatIsWrittenElsewhereWhole) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_attndiff("generate --preset micro -o " + folder.file("a.h5")).exit_code, 0);
  EXPECT_EQ(run_attndiff("generate --preset micro -o " + folder.file("b.h5") + " <&- >&- 2>/dev/null #").exit_code, 0);
  EXPECT_EQ(read_bytes(folder.file("a.h5")), read_bytes(folder.file("b.h5")));
}

TEST(Ranges, AreSaidAsAPersonReadsThem) {
  const std::string replay = "replay --candidate recorded " + kFixture;
  for (const auto& [words, message] : {
           std::pair{replay + " --threads -1", "--threads: expected a whole number from 0 to 1024, found '-1'"},
           std::pair{replay + " --threads x", "--threads: expected a whole number from 0 to 1024, found 'x'"},
           std::pair{replay + " --threads 1025", "--threads: expected a whole number from 0 to 1024, found '1025'"},
           std::pair{replay + " --time-limit -1", "--time-limit: expected a whole number from 0 to 1000000"},
           std::pair{replay + " --repeat 0", "--repeat: expected a whole number from 1 to 1000"},
           std::pair{std::string("mutants --random 0"), "--random: expected a whole number from 1 to"},
           std::pair{std::string("mutants --threads 65536"), "--threads: expected a whole number from 0 to 1024"},
           std::pair{"record -o x --threads 2000 " + kFixture, "--threads: expected a whole number from 0 to 1024"},
       }) {
    const ProgramRun run = run_attndiff(words);
    EXPECT_EQ(run.exit_code, 2) << words;
    EXPECT_THAT(run.output, HasSubstr(message));
  }
}

TEST(RecordedAgainstItself, IsWrongUsage) {
  for (const std::string candidates : {"--candidate recorded ", "--candidate cpu --candidate recorded "}) {
    const ProgramRun run = run_attndiff("replay --reference recorded " + candidates + kFixture);
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_THAT(run.output, HasSubstr("--candidate: recorded tensors cannot be compared with themselves"));
  }
  EXPECT_EQ(run_attndiff("replay --reference recorded --candidate cpu --mode free --layers 0 --steps 0 --stages out " +
                         kFixture)
                .exit_code,
            0);
}

}  // namespace
}  // namespace attndiff
