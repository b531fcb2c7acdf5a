#pragma once

#include <string>
#include <vector>

namespace attndiff::cli {

/// A file that the command line names, or that was found through a folder which it names.
struct NamedFile {
  std::string role;  ///< the option or argument: "--json", "FIXTURE"
  std::string path;  ///< empty where the option is not given
};

/// No command writes to a file that it reads, and no two results go to one file. To be called before anything is read
/// or written. Throws Error(usage) naming both. Files are compared, not spellings. Pipes, terminals and other devices
/// keep nothing that could be lost, and are allowed.
void check_files(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs);

}  // namespace attndiff::cli
