#include <algorithm>

#include "device/queue.h"
#include "harness/mutants/with_cuda/gpu_parts.h"
#include "harness/mutants/with_cuda/launch_fault.h"
#include "kernels/mutants/rotary.h"
#include "kernels/mutants/window.h"

namespace attndiff::mutants {
namespace {

using device::Launches;
using kernels::IndexBuildArgs;
using kernels::RingWriteArgs;
using kernels::RotaryArgs;

std::vector<float> yarn_everywhere(const ModelConfig& config, std::int64_t ratio) {
  ModelConfig changed = config;
  if (ratio == 0) {
    changed.compress_rope_theta = config.rope_theta;
  }
  return reference::rotary_frequencies(changed, std::max<std::int64_t>(ratio, 1));
}

std::function<void(const RotaryArgs&, cudaStream_t)> turning_by(const kernels::mutants::RotaryVariant& variant) {
  return [variant](const RotaryArgs& args, cudaStream_t stream) {
    kernels::mutants::launch_rotary_variant(args, variant, stream);
  };
}

void no_inverse(const RotaryArgs& args, cudaStream_t stream) {
  if (args.direction == kernels::RotaryDirection::forward) {
    kernels::launch_rotary(args, stream);
  } else {
    device::copy_on_device(args.to, args.from, static_cast<std::size_t>(args.rows * args.width) * sizeof(Bf16), stream);
  }
}

void first_window(const RingWriteArgs& args, cudaStream_t stream) {
  RingWriteArgs first = args;
  first.tokens = std::min(args.tokens, args.window);
  kernels::launch_ring_write(first, stream);
}

std::function<void(const IndexBuildArgs&, cudaStream_t)> listing_by(
    const kernels::mutants::IndexBuildVariant& variant) {
  return [variant](const IndexBuildArgs& args, cudaStream_t stream) {
    kernels::mutants::launch_index_build_variant(args, variant, stream);
  };
}

/// What the last sequence left in the partial group: any finite scores will do.
void scores_left(float* values, std::int64_t count, float /*value*/, cudaStream_t stream) {
  constexpr float kLeft = 0.25F;
  kernels::launch_fill(values, count, kLeft, stream);
}

}  // namespace

std::vector<Mutant> gpu_row_mutants() {
  return {
      launch_fault("yarn-on-a-window-only-layer", "window-only layers get YaRN's frequencies too", {"q", "micro"},
                   &Launches::frequencies, yarn_everywhere),
      launch_fault("rotary-half-split", "entry k is paired with entry k + half instead of its neighbour",
                   {"q", "micro"}, &Launches::rotary, turning_by({.half_split = true})),
      launch_fault("rotary-at-the-group-index", "compressed rows turn by their group's number, not its position",
                   {"index_k_pre", "micro"}, &Launches::rotary, turning_by({.by_group_index = true})),
      launch_fault("inverse-rotation-skipped", "o is projected without being turned back", {"og", "micro"},
                   &Launches::rotary, no_inverse),
      launch_fault("ring-slot-off-by-one", "once the ring has wrapped, a row goes one slot too far", {"ring", "micro"},
                   &Launches::ring_write, kernels::mutants::launch_ring_write_past_the_wrap),
      launch_fault("prefill-keeps-the-first-window", "the ring keeps a prefill's first rows instead of its last",
                   {"ring", "micro"}, &Launches::ring_write, first_window),
      launch_fault("compressor-state-not-reset", "a sequence starts with the last one's partial group",
                   {"comp_state", "micro"}, &Launches::fill, scores_left),
      launch_fault("window-one-too-wide", "a prefill's window reaches one token too far back", {"idx", "micro"},
                   &Launches::index_build, listing_by({.window_too_wide = true})),
      launch_fault("absent-plus-offset", "an absent pick gets the offset too, and so becomes the last window row",
                   {"idx", "micro"}, &Launches::index_build, listing_by({.offsets_absent = true})),
      launch_fault("position-in-bf16", "positions are rounded to bfloat16 before their phases are looked up",
                   {"q", "released-window-40000"}, &Launches::rotary, turning_by({.bf16_position = true})),
  };
}

}  // namespace attndiff::mutants
