#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace attndiff {

/// What one comparison was.
struct ReproParts {
  std::string reference;
  std::string candidate;
  std::string mode;  ///< of the comparison
  int repeat = 1;    ///< of the run
  std::int64_t layer_id = 0;
  std::size_t step = 0;
  std::string stage;
  std::string tolerance_file;  ///< empty: the built-in tolerances
  std::string fixture;
};

/// The command that makes just that comparison, ready for a POSIX shell.
[[nodiscard]] std::string repro_command(const ReproParts& parts);

/// A word as a POSIX shell takes it back unchanged.
[[nodiscard]] std::string shell_quoted(const std::string& word);

}  // namespace attndiff
