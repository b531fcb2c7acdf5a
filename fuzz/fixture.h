#pragma once

#include <cstddef>
#include <cstdint>

namespace attndiff::fuzzing {

/// Where the file is checked.
enum class Way : std::uint8_t {
  guarded,     ///< in a child process, as every command does
  in_process,  ///< here, so that coverage and sanitizers see it; for sound HDF5
};

/// Holds the bytes of a file against the format and reads all of it. Whatever the bytes are, each fault is an
/// Error(input) that names the file, and a file without a violation reads whole.
void check_fixture(const std::uint8_t* data, std::size_t size, Way way);

}  // namespace attndiff::fuzzing
