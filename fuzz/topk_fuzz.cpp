#include "fuzz/demand.h"
#include "fuzz/memory_file.h"
#include "harness/topk/cases.h"
#include "reference/contract/error.h"

/// Files of recorded top-k cases: read and selected from, or refused by an Error(input) that names the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attndiff;
  const fuzzing::MemoryFile file(data, size);
  try {
    const std::vector<TopkCase> cases = read_topk_cases(file.path());
    const TopkReport report = run_topk_cases(cases);
    fuzzing::demand(report.total == static_cast<std::int64_t>(cases.size()), "every case is counted");
  } catch (const Error& e) {
    fuzzing::demand(e.kind() == ErrorKind::input, "a fault of the file is an Error(input)");
    fuzzing::demand(e.details().file == file.path(), "an error names the file");
  }
  return 0;
}
