#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/contract/config.h"

namespace attndiff {

/// A model as its configuration file describes it: dimensions, constants, and the role of every layer. max_tokens,
/// which no such file has, is 0.
struct ModelDescription {
  ModelConfig config;
  std::vector<LayerRole> layers;
};

/// Reads a released model's configuration (.json): the checkpoint's config.json (hidden_size, ...; as a whole or under
/// text_config) or that of its inference code (dim, ...). Or a .toml file with this project's names: a table `config`
/// with the numbers of a fixture's /config, and a table in the array `layers` for each layer, as in a recipe.
/// Throws Error(input) that names file, key, expected, found.
[[nodiscard]] ModelDescription read_model_description(const std::string& path);

/// The layers of these ids, ascending; throws Error(usage) for one that the model does not have.
[[nodiscard]] std::vector<LayerRole> chosen_layers(const ModelDescription& model, const std::vector<std::int64_t>& ids,
                                                   const std::string& path);

}  // namespace attndiff
