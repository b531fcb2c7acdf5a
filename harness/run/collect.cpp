#include "harness/run/collect.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

namespace fs = std::filesystem;

void add_folder(const fs::path& folder, std::set<std::string>& files) {
  std::error_code problem;
  for (fs::recursive_directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
    const std::string extension = it->path().extension().string();
    if ((extension == ".h5" || extension == ".hdf5") && it->is_regular_file()) {
      files.insert(it->path().string());
    }
  }
  if (problem) {
    throw Error(ErrorKind::input, {.file = folder.string(),
                                   .object = {},
                                   .problem = "the folder cannot be read: " + problem.message(),
                                   .expected = {},
                                   .found = {}});
  }
}

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
  std::set<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      add_folder(path, files);
    } else {
      files.insert(path);
    }
  }
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
