#include "harness/backends/registry.h"

#include <fmt/format.h>

#include "harness/backends/cpu.h"
#include "harness/backends/recorded.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

constexpr const char* kKnown = "cpu, cuda, cuda:N, recorded";
constexpr const char* kNoCuda = "this program was built without a CUDA toolkit";

bool names_cuda(const std::string& name) { return name == "cuda" || name.rfind("cuda:", 0) == 0; }

BackendStatus cuda_status() { return {.name = "cuda", .usable = false, .detail = kNoCuda}; }

}  // namespace

std::vector<BackendStatus> backend_statuses(int threads) {
  const auto usable = [](const Backend& backend) {
    return BackendStatus{.name = backend.name(), .usable = true, .detail = backend.description()};
  };
  return {usable(*make_cpu_backend(threads)), cuda_status(), usable(*make_recorded_backend())};
}

std::unique_ptr<Backend> make_backend(const std::string& name, int threads) {
  if (name == "cpu") {
    return make_cpu_backend(threads);
  }
  if (name == "recorded") {
    return make_recorded_backend();
  }
  if (names_cuda(name)) {
    throw Error(ErrorKind::unavailable,
                {.file = {}, .object = "backend " + name, .problem = kNoCuda, .expected = {}, .found = {}});
  }
  throw Error(ErrorKind::usage,
              {.file = {}, .object = "backend", .problem = "unknown name", .expected = kKnown, .found = name});
}

std::string default_candidate() { return cuda_status().usable ? "cuda" : "recorded"; }

}  // namespace attndiff
