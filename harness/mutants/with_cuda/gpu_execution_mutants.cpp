#include <cstring>

#include "device/queue.h"
#include "harness/mutants/with_cuda/gpu_parts.h"
#include "harness/mutants/with_cuda/launch_fault.h"
#include "kernels/mutants/stray.h"

namespace attndiff::mutants {
namespace {

using device::Launches;
using kernels::SparseAttentionArgs;

/// The host does not wait for the scores it asked for. The buffer is cleared and the stream held up, so that what the
/// host then reads does not depend on chance.
void not_waiting(void* host, const void* scores, std::size_t bytes, cudaStream_t stream) {
  constexpr std::int64_t kLongerThanSelecting = 30'000'000;  // nanoseconds
  std::memset(host, 0, bytes);
  kernels::mutants::launch_delay(kLongerThanSelecting, stream);
  device::copy_to_host(host, scores, bytes, stream);
}

void dead_row(const SparseAttentionArgs& args, kernels::AttentionForm form, cudaStream_t stream) {
  constexpr std::int64_t kDead = 1777;
  kernels::launch_sparse_attention(args, form, stream);
  if (args.tokens > kDead) {
    const std::int64_t width = args.heads * args.head_dim;
    device::clear(args.o + kDead * width, static_cast<std::size_t>(width) * sizeof(Bf16), stream);
  }
}

void stray_in_decode(const kernels::IndexBuildArgs& args, cudaStream_t stream) {
  kernels::launch_index_build(args, stream);
  if (!args.prefill) {
    kernels::mutants::launch_stray_store(stream);
  }
}

/// The error stays with the process: it comes up in the free run, where the stage is read, and everywhere after.
Mutant illegal_address() {
  Mutant mutant = launch_fault("illegal-address", "a decode step stores outside its memory", {"idx", "tiny"},
                               &Launches::index_build, stray_in_decode);
  mutant.mode = "free";
  mutant.needs_process = true;
  return mutant;
}

}  // namespace

std::vector<Mutant> gpu_execution_mutants() {
  return {
      launch_fault("missing-stream-wait", "the host selects before the scores have arrived", {"selection", "mid"},
                   &Launches::download_scores, not_waiting),
      launch_fault("one-row-in-2048-dead", "one query's row of o is zero", {"o", "released-window-2048"},
                   &Launches::sparse_attention, dead_row),
      illegal_address(),
  };
}

}  // namespace attndiff::mutants
