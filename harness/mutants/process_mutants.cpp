// Candidates that take their process with them, or never come back.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"

namespace attndiff::mutants {
namespace {

void killed_by_signal(const LayerCall& call, TensorView&) {
  if (!call.shape.prefill()) {
    static_cast<void>(std::raise(SIGSEGV));
  }
}

/// An exit status of success is no success.
void ends_quietly(const LayerCall&, TensorView&) { _exit(EXIT_SUCCESS); }

void never_returns(const LayerCall&, TensorView&) {
  while (true) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

Mutant in_process(Mutant mutant) {
  mutant.mode = "free";  // the run that comes first
  mutant.needs_process = true;
  mutant.time_limit = 2;
  return mutant;
}

}  // namespace

std::vector<Mutant> process_mutants() {
  return {
      in_process(fault("dies-of-a-signal", "the candidate's process gets SIGSEGV at its first decode step",
                       {"kv", "tiny"}, with_stage("kv", killed_by_signal))),
      in_process(fault("exits-with-success", "the candidate ends its process with exit status 0", {"o", "tiny"},
                       with_stage("o", ends_quietly))),
      in_process(fault("never-returns", "the candidate waits for ever in attention", {"o", "tiny"},
                       with_stage("o", never_returns))),
  };
}

}  // namespace attndiff::mutants
