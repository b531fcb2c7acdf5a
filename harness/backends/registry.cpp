#include "harness/backends/registry.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "harness/backends/cpu.h"
#include "harness/backends/recorded.h"
#include "reference/contract/error.h"

#ifdef ATTNDIFF_HAVE_CUDA
#include "device/gpu.h"
#include "harness/backends/cuda.h"
#endif

namespace attndiff {
namespace {

constexpr const char* kKnown = "cpu, cuda, cuda:N, recorded";

/// The GPU that "cuda" or "cuda:N" names, or nothing for another name.
std::optional<int> cuda_ordinal(const std::string& name) {
  constexpr std::string_view kPrefix = "cuda:";
  if (name == "cuda") {
    return 0;
  }
  if (name.rfind(kPrefix, 0) != 0) {
    return std::nullopt;
  }
  int ordinal = 0;
  const char* end = name.data() + name.size();
  const auto [rest, problem] = std::from_chars(name.data() + kPrefix.size(), end, ordinal);
  if (problem != std::errc{} || rest != end || ordinal < 0) {
    return std::nullopt;
  }
  return ordinal;
}

/// Why no CUDA backend can run on that GPU, or nothing where one can.
std::optional<std::string> cuda_reason([[maybe_unused]] int ordinal) {
#ifdef ATTNDIFF_HAVE_CUDA
  return device::unavailable_reason(ordinal);
#else
  return "this program was built without a CUDA toolkit";
#endif
}

std::unique_ptr<Backend> make_cuda(const std::string& name, int ordinal, [[maybe_unused]] int threads) {
  if (const auto reason = cuda_reason(ordinal)) {
    throw Error(ErrorKind::unavailable,
                {.file = {}, .object = "backend " + name, .problem = *reason, .expected = {}, .found = {}});
  }
#ifdef ATTNDIFF_HAVE_CUDA
  return make_cuda_backend(name, ordinal, threads);
#else
  return nullptr;
#endif
}

BackendStatus cuda_status() {
  if (const auto reason = cuda_reason(0)) {
    return {.name = "cuda", .usable = false, .detail = *reason};
  }
  return {.name = "cuda", .usable = true, .detail = make_cuda("cuda", 0, 1)->description()};
}

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
  if (const auto ordinal = cuda_ordinal(name)) {
    return make_cuda(name, *ordinal, threads);
  }
  throw Error(ErrorKind::usage,
              {.file = {}, .object = "backend", .problem = "unknown name", .expected = kKnown, .found = name});
}

std::string default_candidate() { return cuda_reason(0) ? "recorded" : "cuda"; }

}  // namespace attndiff
