#pragma once

#include <cstdio>
#include <cstdlib>

namespace attndiff::fuzzing {

/// Ends the program, which the fuzzer takes for a crash, where a promise of a reader is broken.
inline void demand(bool kept, const char* promise) {
  if (!kept) {
    std::fprintf(stderr, "broken: %s\n", promise);
    std::abort();
  }
}

}  // namespace attndiff::fuzzing
