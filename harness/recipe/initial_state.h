#pragma once

#include <string>
#include <vector>

#include "harness/fixture/writer.h"
#include "harness/recipe/recipe.h"

namespace attndiff {

struct StateTensor {
  std::string name;  ///< as in /initial_state/layers/L
  FixtureTensor value;
};

/// What a layer's calls before the recipe's first step left behind, P = its start_pos: window rows on the fp8 grid
/// (zero in slots never written), and on kv sources P / ratio latents on the fp4_e4m3 grid, index keys on the fp4_e8m0
/// grid and the partial group: members in slots 0 to P % ratio - 1, the others as new (k = 0, g = -inf).
[[nodiscard]] std::vector<StateTensor> initial_state(const Recipe& recipe, const LayerRole& role);

/// Owners of the slots that a fixture must declare, because they differ from its default, the file's last kv source.
/// Unless the recipe names them they are what history leaves when the calls before were single tokens: the last kv
/// source; and for index keys, under the rule `slot`, the source that completed a group last.
[[nodiscard]] SlotOwners declared_owners(const Recipe& recipe);

}  // namespace attndiff
