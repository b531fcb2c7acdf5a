#pragma once

#include <string>
#include <string_view>

namespace attndiff {

/// Writes a whole file: into a temporary file beside it, flushed to the device, then renamed, so that the final name
/// never holds part of a report, not even when the program is killed. What already exists and is no regular file (a
/// pipe, a terminal) is written to directly. Throws Error(output) naming the file and the system's reason.
void write_atomically(const std::string& path, std::string_view text);

}  // namespace attndiff
