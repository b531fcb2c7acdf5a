#include "fuzz/child_faults.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>

namespace attndiff::fuzzing {
namespace {

std::atomic<bool>* own_fault = nullptr;  // shared with the children

_Unwind_Reason_Code look_at(_Unwind_Context* frame, void* in_hdf5) {
  Dl_info where{};
  const auto pc = static_cast<std::uintptr_t>(_Unwind_GetIP(frame));
  if (dladdr(reinterpret_cast<void*>(pc), &where) != 0 && where.dli_fname != nullptr &&
      std::strstr(where.dli_fname, "libhdf5") != nullptr) {
    *static_cast<bool*>(in_hdf5) = true;
  }
  return _URC_NO_REASON;
}

void note_fault() {
  bool in_hdf5 = false;
  _Unwind_Backtrace(look_at, &in_hdf5);
  if (!in_hdf5) {
    own_fault->store(true);
  }
}

void on_signal(int /*signal*/) {
  note_fault();
  _exit(1);
}

void in_child() {
  __sanitizer_set_death_callback(note_fault);
  std::signal(SIGABRT, on_signal);
}

}  // namespace

void watch_children() {
  void* shared = mmap(nullptr, sizeof *own_fault, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || pthread_atfork(nullptr, nullptr, in_child) != 0) {
    std::abort();
  }
  own_fault = new (shared) std::atomic<bool>(false);
}

bool own_fault_in_child() { return own_fault->load(); }

}  // namespace attndiff::fuzzing
