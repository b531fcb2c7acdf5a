#include "harness/files/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const TextFile kShort{.what = "a list", .megabytes = 1};

/// What the refusal says; empty where the file is read.
std::string refusal(const std::string& path) {
  try {
    static_cast<void>(read_text_file(path, kShort));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_EQ(e.details().file, path);
    return e.what();
  }
  return {};
}

class TextFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(::testing::TempDir()) / ("attndiff_text_" + test + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string file(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(TextFiles, EveryByteIsRead) {
  const std::string text = std::string("a\0\r\n", 4) + std::string(200'000, 'x');
  std::ofstream(file("a"), std::ios::binary) << text;
  EXPECT_EQ(read_text_file(file("a"), kShort), text);
  std::ofstream(file("empty")).close();
  EXPECT_EQ(read_text_file(file("empty"), kShort), "");
}

TEST_F(TextFiles, APipeIsRead) {
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(file("pipe")) << "through a pipe"; });
  EXPECT_EQ(read_text_file(file("pipe"), kShort), "through a pipe");
  writer.join();
}

TEST_F(TextFiles, RefusalsSayWhy) {
  EXPECT_THAT(refusal(file("none")), HasSubstr("cannot be read (expected a list, found No such file or directory)"));
  EXPECT_THAT(refusal(folder_.string()), HasSubstr("found a folder"));
  std::ofstream(file("long")) << std::string(1'000'001, 'x');
  EXPECT_THAT(refusal(file("long")), HasSubstr("too long (expected at most 1 MB"));
}

TEST(TextFileDevice, OneWithoutEndIsTooLong) {
  if (!fs::exists("/dev/zero")) {
    GTEST_SKIP() << "no /dev/zero here";
  }
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("too long"));
}

}  // namespace
}  // namespace attndiff
