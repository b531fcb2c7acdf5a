#pragma once

#include <cstdint>
#include <string>

namespace attndiff {

/// A text file as its reader sees it.
struct TextFile {
  std::string what;         ///< "a TOML recipe"
  std::uint64_t megabytes;  ///< the most it may have
};

/// The bytes of a text file or pipe. Throws Error(input) naming the file and the system's reason where it cannot be
/// read, and where it is a folder or longer than allowed: a device may have no end.
[[nodiscard]] std::string read_text_file(const std::string& path, const TextFile& expected);

}  // namespace attndiff
