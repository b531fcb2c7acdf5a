#include "harness/files/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;

/// An open file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) {
      static_cast<void>(::close(number_));
    }
  }

  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  int number_;
};

[[noreturn]] void refuse(const std::string& path, std::string problem, const TextFile& expected, std::string found) {
  throw Error(ErrorKind::input, {.file = path,
                                 .object = {},
                                 .problem = std::move(problem),
                                 .expected = expected.what,
                                 .found = std::move(found)});
}

}  // namespace

std::string read_text_file(const std::string& path, const TextFile& expected) {
  constexpr const char* kUnreadable = "cannot be read";
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    refuse(path, kUnreadable, expected, "a folder");
  }
  const Descriptor file(path);
  if (file.number() < 0) {
    refuse(path, kUnreadable, expected, std::generic_category().message(errno));
  }
  std::string text;
  std::array<char, 1U << 16U> buffer{};
  for (;;) {
    const ssize_t got = ::read(file.number(), buffer.data(), buffer.size());
    if (got == 0) {
      return text;
    }
    if (got < 0 && errno != EINTR) {
      refuse(path, kUnreadable, expected, std::generic_category().message(errno));
    }
    text.append(buffer.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
    if (text.size() > expected.megabytes * kMegabyte) {
      refuse(path, "too long", {.what = "at most " + std::to_string(expected.megabytes) + " MB", .megabytes = 0},
             "more");
    }
  }
}

}  // namespace attndiff
