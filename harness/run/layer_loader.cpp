#include "harness/run/layer_loader.h"

#include "harness/fixture/reader.h"

namespace attndiff {

LayerInput LayerLoader::load(std::size_t step, std::size_t layer) {
  const FixtureStep& call = fixture_.steps().at(step);
  return {.step = step,
          .layer = layer,
          .shape = call.shape,
          .sequence = call.sequence,
          .x = fixture_.input(step, layer),
          .weights = weights_.get(layer),
          .shared = fixture_.shared_inputs(step, layer)};
}

}  // namespace attndiff
