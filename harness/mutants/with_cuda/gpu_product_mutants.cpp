#include <memory>

#include "harness/mutants/with_cuda/gpu_parts.h"
#include "harness/mutants/with_cuda/launch_fault.h"
#include "kernels/mutants/products.h"

namespace attndiff::mutants {
namespace {

using device::Dense;
using device::DenseCall;
using device::Launches;
using kernels::MatvecArgs;
using kernels::mutants::ScaledProductArgs;

std::function<void(const MatvecArgs&, cudaStream_t)> summing_by(const kernels::mutants::MatvecVariant& variant) {
  return [variant](const MatvecArgs& args, cudaStream_t stream) {
    kernels::mutants::launch_matvec_variant(args, variant, stream);
  };
}

/// Each output group goes through the next group's rows of wo_a, the only weight that is applied in blocks.
Launches groups_rotated() {
  Launches launches;
  launches.matvec = [](const MatvecArgs& args, cudaStream_t stream) {
    for (std::int64_t g = 0; g < args.batch; ++g) {
      MatvecArgs one = args;
      one.batch = 1;
      one.x += g * args.depth;
      one.w += (g + 1) % args.batch * args.outputs * args.depth;
      one.y += g * args.outputs;
      kernels::launch_matvec(one, stream);
    }
  };
  launches.multiply = [](Dense& dense, const DenseCall& call, cudaStream_t stream) {
    for (std::int64_t g = 0; g < call.batch; ++g) {
      DenseCall one = call;
      one.batch = 1;
      one.x += g * call.x_batch_stride;
      one.w += (g + 1) % call.batch * call.outputs * call.depth;
      one.y = static_cast<Bf16*>(call.y) + g * call.y_batch_stride;
      dense.multiply(one, stream);
    }
  };
  return launches;
}

/// The scale finds the operands of the product before it, which gave the index weights, and starts from these.
Launches index_weights_rounded_once() {
  const auto last = std::make_shared<ScaledProductArgs>();
  Launches launches;
  launches.matvec = [last](const MatvecArgs& args, cudaStream_t stream) {
    *last = {.x = args.x, .w = args.w, .y = nullptr, .tokens = 1, .outputs = args.outputs, .depth = args.depth};
    kernels::launch_matvec(args, stream);
  };
  launches.multiply = [last](Dense& dense, const DenseCall& call, cudaStream_t stream) {
    *last = {
        .x = call.x, .w = call.w, .y = nullptr, .tokens = call.tokens, .outputs = call.outputs, .depth = call.depth};
    dense.multiply(call, stream);
  };
  launches.scale = [last](const kernels::ScaleArgs& args, cudaStream_t stream) {
    ScaledProductArgs product = *last;
    product.y = args.y;
    product.scale = args.scale;
    kernels::mutants::launch_scaled_product(product, stream);
  };
  return launches;
}

}  // namespace

std::vector<Mutant> gpu_product_mutants() {
  return {
      launch_fault("partial-sums-in-bf16",
                   "a decode step's products are split four ways, with partial sums in bfloat16", {"qr", "micro"},
                   &Launches::matvec, summing_by({.bf16_partials = true})),
      fault("output-groups-rotated", "each output group is projected by its neighbour's rows", {"og", "micro"},
            with_launches(groups_rotated)),
      fault("index-weight-rounded-once", "the projected index weight is scaled before it is rounded",
            {"index_w", "micro"}, with_launches(index_weights_rounded_once)),
      control("split-products-micro", "a decode step's products are split four ways, with partial sums in float32",
              "micro", with_launches([] { return replaced(&Launches::matvec, summing_by({})); })),
  };
}

}  // namespace attndiff::mutants
