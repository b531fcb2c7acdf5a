#include "fuzz/child_faults.h"
#include "fuzz/demand.h"
#include "fuzz/fixture.h"

/// Files damaged byte by byte, read as a command reads them: HDF5 may crash on them, in a child process.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attndiff::fuzzing;
  check_fixture(data, size, Way::guarded);
  demand(!own_fault_in_child(), "only HDF5 crashes on a damaged file");
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  attndiff::fuzzing::watch_children();
  return 0;
}
