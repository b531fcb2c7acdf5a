#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

TEST(Validate, BundledFixturesKeepToTheFormat) {
  const ProgramRun run = run_attndiff("validate " + kFixtures);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("tiny-ties.h5: ok"));
  EXPECT_THAT(run.output, HasSubstr("5 fixtures, 0 with violations, 0 violations"));
}

TEST(Validate, EveryViolationOfEveryFile) {
  const TemporaryFolder folder;
  const std::string good = folder.copy(kFixtures + "/tiny-ties.h5", "good.h5");
  const std::string bad = folder.copy(kFixtures + "/tiny-prefill-decode.h5", "bad.h5");
  {
    FixtureEditor e(bad);
    e.remove("/layers/0001/weights/wkv");
    e.set("/steps/0002/layers/0003/x", 7, std::nan(""));
    e.set("/steps/0002/layers/0003/expected/idx", 0, -7);
  }
  const std::string before = read_bytes(bad);
  const ProgramRun run = run_attndiff("validate " + bad + " " + folder.file("absent.h5") + " " + good);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr(bad + ": /layers/0001/weights/wkv: missing (expected dataset bfloat16 [32, 64], "
                                          "found nothing)\n"));
  EXPECT_THAT(run.output, HasSubstr(bad + ": /steps/0002/layers/0003/x: 1 of 64 values are not finite (expected finite "
                                          "numbers, found nan at [0, 7])\n"));
  EXPECT_THAT(run.output, HasSubstr("found -7 at [0, 0])\n"));
  EXPECT_THAT(run.output, HasSubstr("absent.h5: the file does not exist"));
  EXPECT_THAT(run.output, HasSubstr(good + ": ok\n"));
  EXPECT_THAT(run.output, HasSubstr("3 fixtures, 2 with violations, 4 violations"));
  EXPECT_EQ(read_bytes(bad), before);
}

TEST(Validate, NothingToValidateIsNoPass) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_attndiff("validate " + folder.path()).exit_code, 4);
  EXPECT_EQ(run_attndiff("validate").exit_code, 2);
}

// The lengths of variable-length strings stand in a heap that HDF5 1.10 believes: one made enormous crashes it.
TEST(Validate, AFileThatCrashesHdf5IsDamaged) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.h5");
  ASSERT_EQ(run_attndiff("generate --preset micro -o " + path).exit_code, 0);
  std::string bytes = read_bytes(path);
  const std::size_t heap = bytes.find("GCOL");
  ASSERT_NE(heap, std::string::npos);
  constexpr std::size_t kFirstLength = 16 + 8;  // behind the heap's header and the object's index and count
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(heap + kFirstLength + 4), 3, '\x7f');
  fixture_testing::write_bytes(path, bytes);
  for (const char* command : {"validate ", "inspect ", "replay --candidate cpu "}) {
    const ProgramRun run = run_attndiff(command + path);
    EXPECT_EQ(run.exit_code, 2) << command << run.output;
    EXPECT_THAT(run.output, HasSubstr(path + ": "));
  }
}

}  // namespace
}  // namespace attndiff
