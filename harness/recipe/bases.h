#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/config.h"

namespace attndiff {

/// Names of the configurations a recipe can start from.
[[nodiscard]] std::vector<std::string> base_names();

/// The configuration of that name, without max_seq and max_tokens (0); nullptr where there is none.
[[nodiscard]] const ModelConfig* find_base(std::string_view name);

}  // namespace attndiff
