#include "harness/mutants/with_cuda/gpu_parts.h"
#include "harness/mutants/with_cuda/launch_fault.h"
#include "kernels/mutants/index_scores.h"

namespace attndiff::mutants {
namespace {

using device::Launches;
using kernels::IndexScoreArgs;

std::function<void(const IndexScoreArgs&, cudaStream_t)> scoring_by(
    const kernels::mutants::IndexScoreVariant& variant) {
  return [variant](const IndexScoreArgs& args, cudaStream_t stream) {
    kernels::mutants::launch_index_score_variant(args, variant, stream);
  };
}

}  // namespace

std::vector<Mutant> gpu_index_mutants() {
  return {
      launch_fault("rectifier-dropped", "negative dots count", {"index_score", "micro"}, &Launches::index_scores,
                   scoring_by({.rectified = false})),
      launch_fault("weight-before-rectifier", "the weight multiplies the dot before it is rectified",
                   {"index_score", "micro"}, &Launches::index_scores, scoring_by({.weighted_first = true})),
      control("index-scores-in-float32-mid", "index scores are summed without tensor cores", "mid",
              with_launches([] { return replaced(&Launches::index_scores, scoring_by({})); })),
  };
}

}  // namespace attndiff::mutants
