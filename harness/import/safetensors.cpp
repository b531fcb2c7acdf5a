#include "harness/import/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "harness/import/json_file.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLengthBytes = 8;
/// What the format's own library accepts at most.
constexpr std::uint64_t kLongestHeader = 100'000'000;

struct NamedType {
  const char* name;
  ElementType type;
};
constexpr std::array kTypes{
    NamedType{"BF16", ElementType::bf16},    NamedType{"F32", ElementType::f32},
    NamedType{"F8_E4M3", ElementType::e4m3}, NamedType{"F8_E8M0", ElementType::e8m0},
    NamedType{"U8", ElementType::u8},        NamedType{"BOOL", ElementType::boolean},
    NamedType{"I32", ElementType::i32},      NamedType{"I64", ElementType::i64},
};

[[noreturn]] void reject(const std::string& file, const std::string& object, const std::string& problem,
                         const std::string& expected, const std::string& found) {
  throw Error(ErrorKind::input, {file, object, problem, expected, found});
}

std::uint64_t file_size(std::ifstream& file) {
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(file.tellg());
  file.seekg(0);
  return size;
}

/// The header's text.
std::string read_header(std::ifstream& file, std::uint64_t size, const std::string& path) {
  std::array<unsigned char, kLengthBytes> prefix{};
  if (size < kLengthBytes || !file.read(reinterpret_cast<char*>(prefix.data()), kLengthBytes)) {
    reject(path, {}, "too short for a safetensors file", "at least 8 bytes", fmt::format("{}", size));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<std::uint64_t>(prefix[i]) << (8 * i);
  }
  const std::uint64_t most = std::min(kLongestHeader, size - kLengthBytes);
  if (length > most) {
    reject(path, "header", "longer than the file, or than a header may be", fmt::format("at most {} bytes", most),
           fmt::format("{} bytes", length));
  }
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) {
    reject(path, "header", "cannot be read", fmt::format("{} bytes", length), "fewer");
  }
  return text;
}

std::uint64_t unsigned_of(const json& value, const std::string& path, const std::string& name, const char* what) {
  if (!value.is_number_unsigned()) {
    reject(path, name, std::string(what) + " is not valid", "an integer from 0", json_text(value));
  }
  return value.get<std::uint64_t>();
}

const json& member(const json& object, const char* key, const std::string& path, const std::string& name) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) {
    reject(path, name, fmt::format("key '{}' is missing", key), "dtype, shape and data_offsets", json_text(object));
  }
  return *found;
}

ArrayInfo info_of(const json& entry, const std::string& path, const std::string& name) {
  ArrayInfo info;
  const json& type = member(entry, "dtype", path, name);
  if (!type.is_string()) {
    reject(path, name, "dtype is not valid", "a string", json_text(type));
  }
  info.type_name = type.get<std::string>();
  const auto* known =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const NamedType& t) { return t.name == info.type_name; });
  info.type = known == kTypes.end() ? ElementType::other : known->type;
  const json& shape = member(entry, "shape", path, name);
  if (!shape.is_array()) {
    reject(path, name, "shape is not valid", "a list of integers", json_text(shape));
  }
  constexpr std::uint64_t kLargestExtent = std::uint64_t{1} << 48U;
  for (const json& extent : shape) {
    if (unsigned_of(extent, path, name, "shape") > kLargestExtent) {
      reject(path, name, "shape is not valid", "extents below 2^48", json_text(shape));
    }
    info.shape.push_back(extent.get<std::int64_t>());
  }
  return info;
}

/// As many bytes as type and shape say; a type that no fixture holds is not counted.
void check_size(const ArrayInfo& info, std::uint64_t bytes, const std::string& path, const std::string& name) {
  if (info.type == ElementType::other) {
    return;
  }
  std::uint64_t due = size_of(info.type);
  bool overflow = false;
  for (const std::int64_t extent : info.shape) {
    overflow = __builtin_mul_overflow(due, static_cast<std::uint64_t>(extent), &due) || overflow;
  }
  if (overflow || due != bytes) {
    reject(path, name, "its offsets contradict type and shape",
           overflow ? "a size that fits 64 bits" : fmt::format("{} bytes", due), fmt::format("{} bytes", bytes));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  std::ifstream file = open_input(path);
  const std::uint64_t size = file_size(file);
  const json header = parse_json(read_header(file, size, path), path, "header");
  const std::uint64_t data = static_cast<std::uint64_t>(file.tellg());
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      continue;
    }
    const json& offsets = member(entry, "data_offsets", path, name);
    if (!offsets.is_array() || offsets.size() != 2) {
      reject(path, name, "data_offsets is not valid", "two integers", json_text(offsets));
    }
    const std::uint64_t begin = unsigned_of(offsets[0], path, name, "data_offsets");
    const std::uint64_t end = unsigned_of(offsets[1], path, name, "data_offsets");
    if (begin > end || end > size - data) {
      reject(path, name, "its offsets lie outside the file", fmt::format("0 to {} in order", size - data),
             fmt::format("{} to {}", begin, end));
    }
    const ArrayInfo info = info_of(entry, path, name);
    check_size(info, end - begin, path, name);
    entries_.emplace(name, Entry{.info = info, .begin = data + begin, .end = data + end});
  }
  std::vector<std::pair<std::uint64_t, const std::string*>> order;
  for (const auto& [name, entry] : entries_) {
    order.emplace_back(entry.begin, &name);
  }
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return std::pair(a.first, entries_.at(*a.second).end) < std::pair(b.first, entries_.at(*b.second).end);
  });
  std::uint64_t next = data;
  for (const auto& [begin, name] : order) {
    if (begin != next) {
      reject(path, *name, begin < next ? "overlaps another array" : "leaves a hole before it",
             fmt::format("to begin at {}", next - data), fmt::format("{}", begin - data));
    }
    next = entries_.at(*name).end;
  }
  if (next != size) {
    reject(path, {}, "bytes that belong to no array", fmt::format("{} bytes of arrays", next - data),
           fmt::format("{}", size - data));
  }
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) {
    names.push_back(name);
  }
  return names;
}

Array SafetensorsFile::read(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    reject(path_, name, "missing", "an array of this name", fmt::format("{} others", entries_.size()));
  }
  const Entry& entry = found->second;
  Array array{.info = entry.info, .bytes = {}};
  if (entry.info.type == ElementType::other) {
    reject(path_, name, "an element type that no fixture holds", "BF16, F32, F8_E4M3, F8_E8M0, U8, BOOL, I32 or I64",
           entry.info.type_name);
  }
  array.bytes.resize(entry.end - entry.begin);
  std::ifstream file = open_input(path_);
  file.seekg(static_cast<std::streamoff>(entry.begin));
  if (!file.read(reinterpret_cast<char*>(array.bytes.data()), static_cast<std::streamsize>(array.bytes.size()))) {
    reject(path_, name, "cannot be read", fmt::format("{} bytes", array.bytes.size()), "fewer");
  }
  return array;
}

}  // namespace attndiff
