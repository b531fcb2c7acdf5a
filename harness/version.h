#pragma once

#include <string>

namespace attndiff {

/// "0.1.0".
[[nodiscard]] std::string tool_version();

/// The commit the program was built from, with "-dirty" where the tree had changes; "unknown" outside a checkout.
[[nodiscard]] std::string source_commit();

/// "attndiff 0.1.0 (COMMIT, CUDA 13.0)" or "(COMMIT, without CUDA)".
[[nodiscard]] std::string version_text();

}  // namespace attndiff
