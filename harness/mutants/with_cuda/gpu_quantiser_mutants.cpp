#include "harness/mutants/with_cuda/gpu_parts.h"
#include "harness/mutants/with_cuda/launch_fault.h"
#include "kernels/mutants/quantize.h"

namespace attndiff::mutants {
namespace {

using device::Launches;
using kernels::QuantizeArgs;
using kernels::RoundTrip;

/// One of the round trips by another kernel.
std::function<void(const QuantizeArgs&, cudaStream_t)> quantising(RoundTrip kind,
                                                                  const kernels::mutants::QuantizeVariant& variant) {
  return [kind, variant](const QuantizeArgs& args, cudaStream_t stream) {
    if (args.kind == kind) {
      kernels::mutants::launch_quantize_variant(args, variant, stream);
    } else {
      kernels::launch_quantize(args, stream);
    }
  };
}

}  // namespace

std::vector<Mutant> gpu_quantiser_mutants() {
  return {
      launch_fault("e4m3-saturates-at-256", "window rows are clamped at 256 instead of 448", {"kv", "tiny"},
                   &Launches::quantize, quantising(RoundTrip::fp8, {.e4m3_limit = 256})),
      launch_fault("e8m0-scale-by-floor", "the index keys' power-of-two scale is rounded down", {"index_k", "tiny"},
                   &Launches::quantize, quantising(RoundTrip::fp4_e8m0, {.scale_by_floor = true})),
      launch_fault("e2m1-ties-away", "halfway values leave zero instead of going to the even code", {"index_k", "mid"},
                   &Launches::quantize, quantising(RoundTrip::fp4_e8m0, {.ties_away = true})),
      launch_fault("latent-reciprocal", "a latent is multiplied by the reciprocal of its scale", {"compress_kv", "mid"},
                   &Launches::quantize, quantising(RoundTrip::fp4_e4m3, {.reciprocal = true})),
  };
}

}  // namespace attndiff::mutants
