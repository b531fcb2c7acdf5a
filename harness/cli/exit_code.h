#pragma once

#include "reference/contract/error.h"

namespace attndiff::cli {

/// Exit codes, as docs/cli.md promises them. Nothing below the command line knows these numbers.
enum ExitCode : int {
  kPassed = 0,
  kFailed = 1,
  kUsageOrInput = 2,
  kUnavailable = 3,
  kNothingVerified = 4,
  kInternal = 5,
};

[[nodiscard]] constexpr ExitCode exit_code_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::input:
    case ErrorKind::refused:
      return kUsageOrInput;
    case ErrorKind::unavailable:
      return kUnavailable;
    case ErrorKind::output:
    case ErrorKind::internal:
      return kInternal;
  }
  return kInternal;
}

}  // namespace attndiff::cli
