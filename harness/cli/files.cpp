#include "harness/cli/files.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/files/identity.h"
#include "reference/contract/error.h"

namespace attndiff::cli {
namespace {

bool keeps_nothing(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_other(path, ignored);
}

/// Refuses an output that is one of these other files.
void refuse_if_among(const NamedFile& output, const std::vector<NamedFile>& others, const char* problem) {
  for (const NamedFile& other : others) {
    if (!other.path.empty() && same_file(output.path, other.path)) {
      throw Error(ErrorKind::usage,
                  {.file = {},
                   .object = output.role,
                   .problem = problem,
                   .expected = "another path",
                   .found = fmt::format("'{}', which is {} '{}'", output.path, other.role, other.path)});
    }
  }
}

}  // namespace

void check_files(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs) {
  std::vector<NamedFile> earlier;
  for (const NamedFile& output : outputs) {
    if (output.path.empty() || keeps_nothing(output.path)) {
      continue;
    }
    refuse_if_among(output, inputs, "would replace a file that the command reads");
    refuse_if_among(output, earlier, "two reports cannot have the same file");
    earlier.push_back(output);
  }
}

}  // namespace attndiff::cli
