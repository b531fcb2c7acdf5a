#include "harness/cli/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>

namespace attndiff::cli {
namespace {

/// The system's reason for the first failure; 0 while there is none.
int first_failure = 0;

void note_failure() noexcept {
  if (first_failure == 0) {
    first_failure = errno == 0 ? EIO : errno;
  }
}

}  // namespace

void write_output(std::string_view text) noexcept {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    note_failure();
  }
}

void occupy_standard_descriptors() noexcept {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) {
      // Opened the wrong way round, so that using it still fails. The lowest free number is this one.
      static_cast<void>(::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
}

int finish_output(int code) {
  errno = 0;
  std::cout.flush();  // --help and --version are printed through it
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
    note_failure();
  }
  if (first_failure == 0) {
    return code;
  }
  print_error("attndiff: standard output cannot be written: {}\n", std::generic_category().message(first_failure));
  return code == kFailed ? kFailed : kInternal;
}

}  // namespace attndiff::cli
