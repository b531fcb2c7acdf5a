#include "harness/mutants/with_cuda/launch_fault.h"

#include "harness/backends/with_cuda/cuda_variant.h"

namespace attndiff::mutants {

MakeBackend with_launches(std::function<device::Launches()> make, const Arithmetic& declared) {
  return [make = std::move(make), declared](int threads, const std::string& name) {
    constexpr int kFirstGpu = 0;
    device::RuntimeOptions options;
    options.poison = true;
    options.threads = threads;
    options.launches = make();
    return make_cuda_variant(name, kFirstGpu, std::move(options), declared);
  };
}

}  // namespace attndiff::mutants
