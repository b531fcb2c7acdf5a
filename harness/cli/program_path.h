#pragma once

#include <string>

namespace attndiff::cli {

/// The path of this program's file, for starting it again. Throws Error(internal) where the system does not tell.
[[nodiscard]] std::string program_path();

}  // namespace attndiff::cli
