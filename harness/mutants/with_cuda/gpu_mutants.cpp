#include <algorithm>
#include <iterator>

#include "harness/mutants/with_cuda/gpu_parts.h"
#include "reference/contract/error.h"

namespace attndiff::mutants {
namespace {

/// A fault of the small fixtures, and where it is due at released geometry.
struct Again {
  const char* name;
  const char* stage;
  const char* fixture;
};

/// Every layer kind, 2048 tokens of prefill, and decode at 40,000. Where a fault's stage is another than in its small
/// fixture, that is because decode completes no group at position 40,000: keys come a step later than queries.
constexpr Again kReleased[] = {
    {"rotary-half-split", "q", "released-window-40000"},
    {"partial-sums-in-bf16", "qr", "released-window-40000"},
    {"ring-slot-off-by-one", "ring", "released-window-40000"},
    {"sink-missing-from-the-denominator", "lse", "released-window-40000"},
    {"inverse-rotation-skipped", "og", "released-window-40000"},
    {"e8m0-scale-by-floor", "index_q", "released-kv2-40000"},
    {"selection-of-the-step-before", "selection", "released-kv2-40000"},
    {"bf16-softmax-weights", "o", "released-reader2-40000"},
    {"newest-block-not-pinned", "candidates", "released-cand1-40000"},
    {"rectifier-dropped", "index_score", "released-reader1-40000"},
    {"candidate-mask-ignored", "selection", "released-index1-40000"},
    {"window-one-too-wide", "idx", "released-window-2048"},
    {"in-progress-group-visible", "selection", "released-kv2-2048"},
};

/// In the prefill of 2048 tokens each mode takes most of a minute's work; one suffices to name the stage.
void keep_to_one_mode(Mutant& mutant) { mutant.one_mode = mutant.fixture.find("2048") != std::string::npos; }

Mutant moved(const std::vector<Mutant>& all, const Again& again) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Mutant& m) { return m.name == again.name; });
  if (found == all.end()) {
    throw Error(ErrorKind::internal, std::string("there is no GPU mutant ") + again.name);
  }
  Mutant mutant = *found;
  mutant.stage = again.stage;
  mutant.fixture = again.fixture;
  mutant.name += mutant.fixture.substr(mutant.fixture.rfind('-'));
  return mutant;
}

}  // namespace

std::vector<Mutant> all_gpu_mutants() {
  std::vector<Mutant> all;
  for (const auto part : {gpu_row_mutants, gpu_product_mutants, gpu_quantiser_mutants, gpu_index_mutants,
                          gpu_selection_mutants, gpu_attention_mutants, gpu_execution_mutants}) {
    auto more = part();
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  for (const Again& again : kReleased) {
    all.push_back(moved(all, again));
  }
  std::for_each(all.begin(), all.end(), keep_to_one_mode);
  return all;
}

}  // namespace attndiff::mutants
