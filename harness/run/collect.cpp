#include "harness/run/collect.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

#include "harness/files/identity.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

namespace fs = std::filesystem;

bool named_as_fixture(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".h5" || extension == ".hdf5";
}

/// Everything in and below a folder that is named as a fixture and is no folder. What cannot be looked into, a folder
/// or a link, stands for itself, so that opening it says why and the others are not lost.
void add_folder(const fs::path& folder, std::set<std::string>& files) {
  std::error_code problem;
  fs::directory_iterator it(folder, problem);
  for (; !problem && it != fs::directory_iterator(); it.increment(problem)) {
    std::error_code unreachable;
    if (it->is_directory(unreachable)) {
      if (!it->is_symlink(unreachable)) {  // which could lead round in a circle
        add_folder(it->path(), files);
      }
    } else if (named_as_fixture(it->path())) {
      files.insert(it->path().string());
    }
  }
  if (problem) {
    files.insert(folder.string());
  }
}

/// Paths, of which those that lead to a file which an earlier one leads to are left out.
class DistinctFiles {
 public:
  void add(const std::string& path) {
    if (seen_.insert(file_identity(path)).second) {
      paths_.push_back(path);
    }
  }

  [[nodiscard]] std::vector<std::string> sorted() && {
    std::sort(paths_.begin(), paths_.end());
    return std::move(paths_);
  }

 private:
  std::set<std::string> seen_;
  std::vector<std::string> paths_;
};

}  // namespace

Shard Shard::parse(const std::string& text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard.index);
  const bool slash = first.ec == std::errc{} && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, shard.count) : first;
  if (!slash || second.ec != std::errc{} || second.ptr != end || shard.index < 1 || shard.index > shard.count) {
    throw Error(ErrorKind::usage, {.file = {},
                                   .object = "--shard",
                                   .problem = "not a part of the fixtures",
                                   .expected = "I/N with 1 <= I <= N",
                                   .found = "'" + text + "'"});
  }
  return shard;
}

std::vector<std::string> collect_fixtures(const std::vector<std::string>& paths, const Shard& shard) {
  DistinctFiles distinct;
  for (const std::string& path : paths) {
    std::error_code ignored;
    std::set<std::string> files{path};
    if (fs::is_directory(path, ignored)) {
      files.clear();
      add_folder(path, files);
    }
    std::for_each(files.begin(), files.end(), [&](const std::string& file) { distinct.add(file); });
  }
  const std::vector<std::string> files = std::move(distinct).sorted();
  std::vector<std::string> part;
  std::size_t position = 0;
  for (const std::string& file : files) {
    if (position++ % shard.count == shard.index - 1) {
      part.push_back(file);
    }
  }
  return part;
}

}  // namespace attndiff
