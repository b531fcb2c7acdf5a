#include "fuzz/edit.h"
#include "fuzz/fixture.h"

/// Sound HDF5 files with other contents: inputs are changed through HDF5, object by object.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attndiff::fuzzing::check_fixture(data, size, attndiff::fuzzing::Way::in_process);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  return attndiff::fuzzing::edit_fixture(data, size, most, seed);
}
