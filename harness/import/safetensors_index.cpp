#include "harness/import/safetensors_index.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/import/json_file.h"
#include "reference/contract/error.h"

namespace attndiff {

SafetensorsIndex::SafetensorsIndex(const std::string& path) : path_(path) {
  const nlohmann::json index = read_json(path);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) {
    throw Error(ErrorKind::input, {.file = path,
                                   .object = "weight_map",
                                   .problem = "missing, or no object",
                                   .expected = "file names by array name",
                                   .found = map == index.end() ? "no such key" : json_text(*map)});
  }
  for (const auto& [name, file] : map->items()) {
    // A name that leads out of the folder is somebody else's file.
    const std::string beside = file.is_string() ? file.get<std::string>() : std::string();
    if (beside.empty() || std::filesystem::path(beside).filename() != beside || beside == ".." || beside == ".") {
      throw Error(ErrorKind::input, {.file = path,
                                     .object = name,
                                     .problem = "not a file beside the index",
                                     .expected = "a file name without folders",
                                     .found = json_text(file)});
    }
    file_of_.emplace(name, beside);
  }
}

std::string SafetensorsIndex::beside(const std::string& file) const {
  return (std::filesystem::path(path_).parent_path() / file).string();
}

std::vector<std::string> SafetensorsIndex::files() const {
  std::set<std::string> files{path_};
  for (const auto& [name, file] : file_of_) {
    files.insert(beside(file));
  }
  return {files.begin(), files.end()};
}

std::vector<std::string> SafetensorsIndex::names() const {
  std::vector<std::string> names;
  names.reserve(file_of_.size());
  for (const auto& [name, file] : file_of_) {
    names.push_back(name);
  }
  return names;
}

Array SafetensorsIndex::read(const std::string& name) const {
  const auto found = file_of_.find(name);
  if (found == file_of_.end()) {
    throw Error(
        ErrorKind::input,
        {.file = path_, .object = name, .problem = "missing", .expected = "an array of this name", .found = {}});
  }
  const std::string file = beside(found->second);
  std::unique_ptr<SafetensorsFile>& shard = open_[file];
  if (!shard) {
    shard = std::make_unique<SafetensorsFile>(file);
  }
  return shard->read(name);
}

}  // namespace attndiff
