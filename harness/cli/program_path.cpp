#include "harness/cli/program_path.h"

#include <filesystem>
#include <system_error>

#include "reference/contract/error.h"

namespace attndiff::cli {

std::string program_path() {
  std::error_code problem;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem) {
    throw Error(ErrorKind::internal, "cannot find this program's own file: " + problem.message());
  }
  return path.string();
}

}  // namespace attndiff::cli
