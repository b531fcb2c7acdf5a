#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

/// For tests only: files that other programs would write.
namespace attndiff::import_testing {

/// The bytes of a value, little endian.
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

struct NamedArray {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

/// A safetensors file around any header and data.
inline std::string safetensors_around(const std::string& header, const std::string& data) {
  return bytes_of<std::uint64_t>({header.size()}) + header + data;
}

inline std::string safetensors(const std::vector<NamedArray>& arrays) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const NamedArray& array : arrays) {
    header[array.name] = {{"dtype", array.dtype},
                          {"shape", array.shape},
                          {"data_offsets", {data.size(), data.size() + array.bytes.size()}}};
    data += array.bytes;
  }
  return safetensors_around(header.dump(), data);
}

/// An npy file around any header dictionary and data.
inline std::string npy(const std::string& dictionary, const std::string& data) {
  std::string header = dictionary;
  while ((10 + header.size() + 1) % 64 != 0) {
    header += ' ';
  }
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + bytes_of<std::uint16_t>({static_cast<std::uint16_t>(header.size())}) +
         header + data;
}

/// A zip archive of these entries, deflated.
void write_zip(const std::string& path, const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace attndiff::import_testing
