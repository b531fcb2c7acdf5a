#include "harness/mutants/catalogue.h"

#include <iterator>

namespace attndiff {

const char* name_of(MutantKind kind) noexcept {
  switch (kind) {
    case MutantKind::fault:
      return "fault";
    case MutantKind::equivalent:
      return "equivalent";
    case MutantKind::control:
      return "control";
  }
  return "?";
}

const std::vector<Mutant>& mutant_catalogue() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> joined;
    for (const auto part :
         {mutants::rotary_mutants, mutants::norm_mutants, mutants::product_mutants, mutants::quantiser_mutants,
          mutants::window_mutants, mutants::compressor_mutants, mutants::index_mutants, mutants::selection_mutants,
          mutants::attention_mutants, mutants::candidate_mutants, mutants::process_mutants}) {
      auto more = part();
      joined.insert(joined.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    return joined;
  }();
  return all;
}

}  // namespace attndiff
