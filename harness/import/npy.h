#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "harness/import/array_source.h"

namespace attndiff {

/// What the header of an .npy file says.
struct NpyHeader {
  ArrayInfo info;
  std::size_t data = 0;  ///< where the elements begin
};

/// Reads the header of an .npy file, version 1 to 3: a Python dictionary with the keys descr, fortran_order and shape,
/// of which only these literals are understood and nothing is evaluated. Little-endian bfloat16 (as ml_dtypes stores
/// it: two bytes without a type, V2), float32, int32, int64, uint8 and bool are known; object arrays, which hold
/// pickles, and column-major ones are refused. `bytes` may be the file's beginning. Throws Error(input).
[[nodiscard]] NpyHeader npy_header(std::span<const std::byte> bytes, const std::string& file, const std::string& name);

}  // namespace attndiff
