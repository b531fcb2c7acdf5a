#include "reports/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// An empty folder of its own.
class AtomicFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(::testing::TempDir()) / ("attndiff_" + test + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(AtomicFile, WritesAndReplaces) {
  const fs::path path = folder_ / "report.json";
  write_atomically(path.string(), "first");
  write_atomically(path.string(), "second\n");
  EXPECT_EQ(contents(path), "second\n");
  EXPECT_EQ(files(), 1U) << "no temporary file stays";
}

TEST_F(AtomicFile, FollowsALink) {
  write_atomically((folder_ / "real").string(), "old");
  fs::create_symlink("real", folder_ / "link");
  write_atomically((folder_ / "link").string(), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(contents(folder_ / "real"), "new");
}

TEST_F(AtomicFile, FollowsALinkToAFileThatIsNotThereYet) {
  fs::create_symlink("real", folder_ / "link");
  write_atomically((folder_ / "link").string(), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(contents(folder_ / "real"), "new");
}

TEST_F(AtomicFile, LinksInACircleStay) {
  fs::create_symlink("b", folder_ / "a");
  fs::create_symlink("a", folder_ / "b");
  EXPECT_THROW(write_atomically((folder_ / "a").string(), "text"), Error);
  EXPECT_TRUE(fs::is_symlink(folder_ / "a"));
}

TEST_F(AtomicFile, AMissingFolderIsAnOutputError) {
  const std::string path = (folder_ / "none" / "report.json").string();
  try {
    write_atomically(path, "text");
    FAIL() << "was written";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::output);
    EXPECT_EQ(e.details().file, path);
  }
}

TEST(AtomicFileDevice, AFullDeviceIsAnOutputError) {
  if (!fs::exists("/dev/full")) {
    GTEST_SKIP() << "no /dev/full here";
  }
  try {
    write_atomically("/dev/full", "text");
    FAIL() << "was written";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::output);
    EXPECT_THAT(std::string(e.what()), HasSubstr("No space left"));
  }
  EXPECT_FALSE(fs::is_regular_file("/dev/full")) << "a device is written to, never replaced";
}

/// A file size limit stands for the full disk: the write fails part of the way.
TEST_F(AtomicFile, AWriteThatFailsHalfwayLeavesTheOldFile) {
  const fs::path path = folder_ / "report.json";
  write_atomically(path.string(), "old");
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
    const ::rlimit limit{4096, 4096};
    int code = 1;
    if (::setrlimit(RLIMIT_FSIZE, &limit) == 0) {
      try {
        write_atomically(path.string(), std::string(1 << 20, 'x'));
      } catch (const Error& e) {
        code = e.kind() == ErrorKind::output ? 0 : 2;
      }
    }
    ::_exit(code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, AKilledWriterNeverLeavesPartUnderTheFinalName) {
  const fs::path path = folder_ / "report.json";
  const std::string a(4 << 20, 'a');
  const std::string b(4 << 20, 'b');
  write_atomically(path.string(), a);
  for (int moment = 0; moment < 20; ++moment) {
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (bool odd = false;; odd = !odd) {
        write_atomically(path.string(), odd ? a : b);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 1700 * moment));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const std::string found = contents(path);
    ASSERT_TRUE(found == a || found == b) << "after kill " << moment << ": " << found.size() << " bytes";
  }
}

}  // namespace
}  // namespace attndiff
