#include "harness/mutants/gpu_catalogue.h"

#ifdef ATTNDIFF_HAVE_CUDA
#include "harness/mutants/with_cuda/gpu_parts.h"
#endif

namespace attndiff {

const std::vector<Mutant>& gpu_mutant_catalogue() {
#ifdef ATTNDIFF_HAVE_CUDA
  static const std::vector<Mutant> all = mutants::all_gpu_mutants();
#else
  static const std::vector<Mutant> all;
#endif
  return all;
}

bool at_released_geometry(const Mutant& mutant) { return mutant.fixture.rfind("released-", 0) == 0; }

}  // namespace attndiff
