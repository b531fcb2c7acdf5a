#pragma once

#include <cstddef>
#include <cstdint>

namespace attndiff::fuzzing {

/// Changes an HDF5 file through HDF5 itself, so that the result is sound HDF5 with other contents: objects,
/// links, attributes, types, shapes, storage, values. `data` has room for `most` bytes. Returns the new size; a file
/// that cannot be edited or that grew past `most` stays as it was.
[[nodiscard]] std::size_t edit_fixture(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed);

}  // namespace attndiff::fuzzing
