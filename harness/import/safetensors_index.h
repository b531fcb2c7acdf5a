#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/import/array_source.h"
#include "harness/import/safetensors.h"

namespace attndiff {

/// A checkpoint in several .safetensors files: an index with a key `weight_map`, which gives for each array the file it
/// is in, by a name in the index's own folder. A file is opened when an array of it is read, and stays open to the end.
class SafetensorsIndex final : public ArraySource {
 public:
  explicit SafetensorsIndex(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept override { return path_; }
  [[nodiscard]] std::vector<std::string> files() const override;
  [[nodiscard]] std::vector<std::string> names() const override;
  [[nodiscard]] bool has(const std::string& name) const override { return file_of_.contains(name); }
  [[nodiscard]] Array read(const std::string& name) const override;

 private:
  [[nodiscard]] std::string beside(const std::string& file) const;

  std::string path_;
  std::map<std::string, std::string> file_of_;
  mutable std::map<std::string, std::unique_ptr<SafetensorsFile>> open_;
};

}  // namespace attndiff
