#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "harness/cli/exit_code.h"

namespace attndiff::cli {

/// Writes to standard output. A failure is kept for finish_output(), so that it cannot hide how the command came out.
void write_output(std::string_view text) noexcept;

template <typename... Values>
void print_output(fmt::format_string<Values...> format, Values&&... values) {
  write_output(fmt::format(format, std::forward<Values>(values)...));
}

/// Writes to standard error, where a failure can be told to nobody.
template <typename... Values>
void print_error(fmt::format_string<Values...> format, Values&&... values) {
  static_cast<void>(std::fputs(fmt::format(format, std::forward<Values>(values)...).c_str(), stderr));
}

/// Gives each of the three standard descriptors that is closed a place to fail at: the next file to be opened would
/// get its number otherwise, and with it what is printed. To be called first.
void occupy_standard_descriptors() noexcept;

/// To be called once, at the end: writes out what is still held, and where standard output could not be written says so
/// and returns kInternal instead of `code`; kFailed stays, as a failed comparison outweighs all else.
[[nodiscard]] int finish_output(int code);

}  // namespace attndiff::cli
