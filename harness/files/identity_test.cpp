#include "harness/files/identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

namespace fs = std::filesystem;

/// An empty folder that is the current one while the test runs.
class Identity : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(::testing::TempDir()) / ("attndiff_identity_" + test + std::to_string(::getpid()));
    fs::create_directories(folder_ / "sub");
    before_ = fs::current_path();
    fs::current_path(folder_);
    std::ofstream("file") << "text";
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  fs::path folder_;
  fs::path before_;
};

TEST_F(Identity, SpellingsOfAFileThatIsThere) {
  fs::create_symlink("file", "link");
  fs::create_hard_link("file", "second_name");
  for (const std::string& other : {std::string("./file"), std::string("sub/../file"), (folder_ / "file").string(),
                                   std::string("link"), std::string("second_name")}) {
    EXPECT_TRUE(same_file("file", other)) << other;
  }
  std::ofstream("copy") << "text";
  EXPECT_FALSE(same_file("file", "copy"));
}

TEST_F(Identity, SpellingsOfAFileThatIsNotThereYet) {
  fs::create_symlink("new", "link");
  for (const std::string& other :
       {std::string("./new"), std::string("sub/../new"), (folder_ / "new").string(), std::string("link")}) {
    EXPECT_TRUE(same_file("new", other)) << other;
  }
  EXPECT_FALSE(same_file("new", "sub/new"));
  EXPECT_FALSE(same_file("new", "file"));
}

TEST_F(Identity, AWriteGoesToTheEndOfTheLinks) {
  fs::create_symlink("sub/new", "link");
  EXPECT_EQ(write_target("link").kind, FileKind::absent);
  EXPECT_TRUE(same_file(write_target("link").name, "sub/new"));
  EXPECT_FALSE(fs::is_symlink(write_target("link").name));
  EXPECT_EQ(write_target("file").kind, FileKind::regular);
  EXPECT_EQ(write_target("sub").kind, FileKind::folder);
  ASSERT_EQ(::mkfifo("pipe", 0600), 0);
  fs::create_symlink("pipe", "to_pipe");
  EXPECT_EQ(write_target("to_pipe").kind, FileKind::other);
}

TEST_F(Identity, LinksInACircleAreNowhereToWriteTo) {
  fs::create_symlink("a", "b");
  fs::create_symlink("b", "a");
  EXPECT_THROW(static_cast<void>(write_target("a")), Error);
  EXPECT_TRUE(same_file("a", "./a"));
}

}  // namespace
}  // namespace attndiff
