#pragma once

#include <string_view>

#include "reference/contract/stage.h"

namespace attndiff {

/// The family of that name, or nullptr.
[[nodiscard]] const ModelFamily* find_family(std::string_view name) noexcept;

/// The same; throws Error(input) that lists the known families.
[[nodiscard]] const ModelFamily& family_named(std::string_view name);

}  // namespace attndiff
