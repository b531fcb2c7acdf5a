#pragma once

#include <cstdint>
#include <string>

namespace attndiff {

/// What stands at the end of a path, links followed.
enum class FileKind : std::uint8_t { absent, regular, folder, other };

/// Where a new file goes that is to replace the one at a path.
struct WriteTarget {
  std::string name;  ///< the path with the links at its end followed, also those to something not there yet
  FileKind kind = FileKind::absent;
};

/// Follows the links at the end of a path, so that a file written through one replaces the link's target and not the
/// link. Throws Error(output) where the links lead round in a circle or what they lead to cannot be reached.
[[nodiscard]] WriteTarget write_target(const std::string& path);

/// One text for all spellings of a file, one that does not exist yet included: absolute, without links, `.` and `..`.
[[nodiscard]] std::string file_identity(const std::string& path);

/// Whether two paths lead to one file, or would once it is there.
[[nodiscard]] bool same_file(const std::string& a, const std::string& b);

}  // namespace attndiff
