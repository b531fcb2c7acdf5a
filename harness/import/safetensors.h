#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/import/array_source.h"

namespace attndiff {

/// A .safetensors file: eight bytes with the length of a JSON header, the header, and the arrays' bytes. The header is
/// bounded to 100 MB; its arrays must fill what follows without holes, overlaps or bytes left over, and each must have
/// as many bytes as its type and shape say.
class SafetensorsFile final : public ArraySource {
 public:
  explicit SafetensorsFile(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept override { return path_; }
  [[nodiscard]] std::vector<std::string> names() const override;
  [[nodiscard]] bool has(const std::string& name) const override { return entries_.contains(name); }
  [[nodiscard]] Array read(const std::string& name) const override;

 private:
  struct Entry {
    ArrayInfo info;
    std::uint64_t begin = 0;  ///< in the file
    std::uint64_t end = 0;
  };

  std::string path_;
  std::map<std::string, Entry> entries_;
};

}  // namespace attndiff
