// Files from the outside: no result takes the place of what was read, and no bad entry hides the good ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "harness/cli/run_program.h"
#include "harness/fixture/testing.h"

namespace attndiff {
namespace {

namespace fs = std::filesystem;
using cli_testing::ProgramRun;
using cli_testing::run_attndiff;
using fixture_testing::read_bytes;
using fixture_testing::TemporaryFolder;
using fixture_testing::write_bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kFixtures = std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures";
const std::string kReplay = "replay -q --candidate recorded --layers 0 --steps 0 ";

/// A folder with a fixture g.h5, a link to it, and a text.
class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    static_cast<void>(folder_.copy(kFixtures + "/tiny-ties.h5", "g.h5"));
    fs::create_symlink("g.h5", at("link.h5"));
    write_bytes(at("text"), "# nothing\n");
  }

  [[nodiscard]] std::string at(const std::string& name) const { return folder_.file(name); }

  /// The command must be refused with both files named, and leave the file as it is.
  void expect_refused(const std::string& arguments, const std::string& file, const std::string& option,
                      const std::string& other) const {
    const std::string before = read_bytes(file);
    const ProgramRun run = run_attndiff(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments << "\n" << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr("attndiff: " + option + ": would replace a file that the command reads"),
                                  HasSubstr("which is " + other)))
        << arguments;
    EXPECT_EQ(read_bytes(file), before) << arguments;
  }

  TemporaryFolder folder_;
};

TEST_F(Files, AReportTakesNoInputsPlace) {
  for (const char* option : {"--json", "--junit", "--html", "--markdown"}) {
    const std::string replay = kReplay + option + " ";
    expect_refused(replay + at("g.h5") + " " + at("g.h5"), at("g.h5"), option, "FIXTURE");
    expect_refused(replay + at("link.h5") + " " + at("g.h5"), at("g.h5"), option, "FIXTURE");
    expect_refused(replay + at("./g.h5") + " " + folder_.path(), at("g.h5"), option, "FIXTURE");
    expect_refused(replay + at("g.h5") + " --shard 1/2 " + folder_.path(), at("g.h5"), option, "FIXTURE");
    for (const std::string list : {"--tolerances", "--known-failures"}) {
      expect_refused(replay + at("./text") + " " + list + " " + at("text") + " " + at("g.h5"), at("text"), option,
                     list);
    }
  }
  for (const char* option : {"--html", "--markdown"}) {
    expect_refused("compare " + at("g.h5") + " " + at("text") + " " + option + " " + at("./text"), at("text"), option,
                   "NEW.json");
  }
}

TEST_F(Files, AFixtureTakesNoInputsPlace) {
  expect_refused("record " + at("g.h5") + " -o " + at("link.h5"), at("g.h5"), "--output", "FIXTURE");
  expect_refused("generate " + at("text") + " -o " + at("./text"), at("text"), "--output", "RECIPE");
  expect_refused("import --layers 0 --config " + at("text") + " --weights w --activations a -o " + at("text"),
                 at("text"), "--output", "--config");
  expect_refused("import --layers 0 --config c --weights " + at("text") + " --activations a -o " + at("text"),
                 at("text"), "--output", "--weights");
  expect_refused("import --layers 0 --config c --weights w --activations " + at("text") + " -o " + at("text"),
                 at("text"), "--output", "--activations");
}

TEST_F(Files, TwoReportsAreOneFileHoweverItIsSpelt) {
  const ProgramRun run =
      run_attndiff(kReplay + "--json " + at("r") + " --html " + folder_.path() + "/./r " + at("g.h5"));
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_THAT(run.output, HasSubstr("attndiff: --html: two reports cannot have the same file"));
  EXPECT_FALSE(fs::exists(at("r")));
  EXPECT_EQ(run_attndiff(kReplay + "--json /dev/null --html /dev/null " + at("g.h5")).exit_code, 0);
}

TEST_F(Files, AnEmptyNameIsWrongUsage) {
  for (const char* option : {"--json", "--tolerances", "--known-failures", "--layers", "--stages"}) {
    const ProgramRun run = run_attndiff(kReplay + at("g.h5") + " " + option + " ''");
    EXPECT_EQ(run.exit_code, 2) << option;
    EXPECT_THAT(run.output, HasSubstr(std::string(option) + ": must not be empty"));
  }
  const std::string before = read_bytes(at("g.h5"));
  EXPECT_EQ(run_attndiff(kReplay + "--json= " + at("g.h5") + " " + at("link.h5")).exit_code, 2);
  EXPECT_EQ(read_bytes(at("g.h5")), before);
}

TEST_F(Files, ADeviceIsNeverReplacedByAFixture) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  for (const std::string& command : {std::string("generate --preset micro"), "record " + at("g.h5")}) {
    const ProgramRun run = run_attndiff(command + " -o " + at("pipe"));
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_THAT(run.output, HasSubstr("pipe: cannot be replaced by a fixture"));
    EXPECT_TRUE(fs::is_fifo(at("pipe")));
  }
}

TEST_F(Files, EachFileIsReplayedOnceHoweverItIsSpelt) {
  const ProgramRun run =
      run_attndiff(kReplay + at("./g.h5") + " " + at("g.h5") + " " + folder_.path() + " " + at("link.h5"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("1 fixtures, "));
  EXPECT_THAT(run_attndiff("validate " + at("./g.h5") + " " + at("g.h5")).output,
              AllOf(HasSubstr("/./g.h5: ok"), HasSubstr("1 fixtures, ")));
}

TEST_F(Files, ABadEntryOfAFolderIsAnErrorAndTheOthersRun) {
  fs::create_symlink("loop.h5", at("loop.h5"));
  fs::create_symlink("nothing", at("dangling.h5"));
  ASSERT_EQ(::mkfifo(at("pipe.h5").c_str(), 0600), 0);
  for (const std::string& command : {kReplay, std::string("validate ")}) {
    const ProgramRun run = run_attndiff(command + folder_.path());
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_THAT(run.output, HasSubstr("loop.h5: cannot be reached: Too many levels of symbolic links"));
    EXPECT_THAT(run.output, HasSubstr("dangling.h5: the file does not exist"));
    EXPECT_THAT(run.output, HasSubstr("pipe.h5: not a file"));
    EXPECT_THAT(run.output, HasSubstr("4 fixtures, "));
  }
  EXPECT_THAT(run_attndiff(kReplay + folder_.path()).output, HasSubstr(" pass, 3 error"));
}

TEST_F(Files, ATextWithoutEndOrAFolderIsRefused) {
  for (const std::string& command :
       {kReplay + "--tolerances /dev/zero " + at("g.h5"), kReplay + "--known-failures /dev/zero " + at("g.h5"),
        "generate /dev/zero -o " + at("x.h5"), std::string("topk --cases /dev/zero")}) {
    const ProgramRun run = run_attndiff(command);
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_THAT(run.output, HasSubstr("/dev/zero: too long (expected at most ")) << command;
  }
  for (const std::string& command : {"compare " + folder_.path() + " " + at("text"),
                                     kReplay + "--tolerances " + folder_.path() + " " + at("g.h5")}) {
    const ProgramRun run = run_attndiff(command);
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_THAT(run.output, AllOf(HasSubstr(folder_.path() + ": cannot be read"), HasSubstr("found a folder")));
  }
}

TEST_F(Files, ControlCharactersInANameAreSpelt) {
  static_cast<void>(folder_.copy(at("g.h5"), "odd\n\x1b[31m.h5"));
  const std::string quoted = "\"" + at("odd\n\x1b[31m.h5") + "\"";
  for (const char* command : {"validate ", "inspect ", "replay --candidate recorded -v --layers 0 --steps 0 "}) {
    const ProgramRun run = run_attndiff(command + quoted);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr("odd\\n\\x1b[31m.h5"), Not(HasSubstr("\x1b")))) << command;
  }
  const ProgramRun absent = run_attndiff("replay --candidate recorded \"" + at("a\nb.h5") + "\"");
  EXPECT_THAT(absent.output, HasSubstr("a\\nb.h5: the file does not exist"));
}

/// Root may read everything: the program then runs as nobody, who must be able to run it.
TEST_F(Files, WhatMayNotBeReadSaysSoAndTheOthersRun) {
  constexpr const char* kAsNobody = "/usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups ";
  const bool root = ::geteuid() == 0;
  const std::string program = std::string(root ? kAsNobody : "") + ATTNDIFF_BINARY + " ";
  if (cli_testing::run(program + "--version").exit_code != 0) {
    GTEST_SKIP() << "nobody cannot run " << ATTNDIFF_BINARY << " here";
  }
  fs::permissions(folder_.path(), fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  fs::permissions(at("g.h5"), fs::perms::others_read, fs::perm_options::add);
  fs::create_directory(at("closed"));
  static_cast<void>(folder_.copy(at("g.h5"), "closed.h5"));
  fs::permissions(at("closed"), fs::perms::none);
  fs::permissions(at("closed.h5"), fs::perms::none);
  const ProgramRun run = cli_testing::run(program + kReplay + folder_.path());
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_THAT(run.output, HasSubstr("closed: the folder cannot be read: Permission denied"));
  EXPECT_THAT(run.output, HasSubstr("closed.h5: cannot be opened: Permission denied"));
  EXPECT_THAT(run.output, HasSubstr(" pass, 2 error"));
  fs::permissions(at("closed"), fs::perms::owner_all);
}

}  // namespace
}  // namespace attndiff
