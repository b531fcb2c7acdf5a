#include "harness/import/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

/// The header's text, read literal by literal.
class Literals {
 public:
  Literals(std::string_view text, const std::string& file, const std::string& name)
      : text_(text), file_(file), name_(name) {}

  [[noreturn]] void reject(const std::string& problem, const std::string& expected, std::string_view found) const {
    constexpr std::size_t kLongest = 60;
    throw Error(ErrorKind::input, {file_, name_, problem, expected, std::string(found.substr(0, kLongest))});
  }

  /// Whether the next sign is this one; it is then read.
  bool take(char sign) {
    skip_space();
    if (text_.empty() || text_.front() != sign) {
      return false;
    }
    text_.remove_prefix(1);
    return true;
  }

  void require(char sign) {
    if (!take(sign)) {
      reject("its npy header is not valid", std::string(1, sign), text_);
    }
  }

  std::string text() {
    skip_space();
    const char quote = text_.empty() ? '\0' : text_.front();
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      reject("its npy header is not valid", "a quoted text (structured types are not known)", text_);
    }
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}}) {
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    }
    reject("its npy header is not valid", "True or False", text_);
  }

  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> values;
    require('(');
    while (!take(')')) {
      skip_space();
      std::int64_t value = 0;
      const auto parsed = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      constexpr std::int64_t kLargestExtent = std::int64_t{1} << 48U;
      if (parsed.ec != std::errc() || value < 0 || value > kLargestExtent) {
        reject("its npy header is not valid", "extents from 0 to 2^48", text_);
      }
      text_.remove_prefix(static_cast<std::size_t>(parsed.ptr - text_.data()));
      values.push_back(value);
      if (!take(',')) {
        require(')');
        break;
      }
    }
    return values;
  }

  bool at_end() {
    skip_space();
    return text_.empty();
  }

 private:
  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) {
      text_.remove_prefix(1);
    }
  }

  std::string_view text_;
  const std::string& file_;
  const std::string& name_;
};

struct NamedType {
  const char* name;
  ElementType type;
};
constexpr std::array kTypes{
    NamedType{"<V2", ElementType::bf16},    NamedType{"|V2", ElementType::bf16}, NamedType{"<f4", ElementType::f32},
    NamedType{"<i4", ElementType::i32},     NamedType{"<i8", ElementType::i64},  NamedType{"|u1", ElementType::u8},
    NamedType{"|b1", ElementType::boolean},
};

ElementType type_named(const std::string& name, const Literals& literals) {
  if (name.find('O') != std::string::npos) {
    literals.reject("an object array, which is a pickle and is never loaded", "numbers", name);
  }
  const auto* known = std::find_if(kTypes.begin(), kTypes.end(), [&](const NamedType& t) { return t.name == name; });
  if (known == kTypes.end()) {
    literals.reject("an element type that no fixture holds",
                    "bfloat16 (V2), float32, int32, int64, uint8 or bool, little endian", name);
  }
  return known->type;
}

ArrayInfo info_of(Literals& literals) {
  std::optional<std::string> type;
  std::optional<bool> column_major;
  std::optional<std::vector<std::int64_t>> shape;
  literals.require('{');
  while (!literals.take('}')) {
    const std::string key = literals.text();
    literals.require(':');
    if (key == "descr" && !type) {
      type = literals.text();
    } else if (key == "fortran_order" && !column_major) {
      column_major = literals.boolean();
    } else if (key == "shape" && !shape) {
      shape = literals.integers();
    } else {
      literals.reject("its npy header is not valid", "descr, fortran_order and shape, each once", key);
    }
    if (!literals.take(',')) {
      literals.require('}');
      break;
    }
  }
  if (!type || !column_major || !shape || !literals.at_end()) {
    literals.reject("its npy header is not valid", "descr, fortran_order and shape, and nothing else", "another form");
  }
  if (*column_major && shape->size() > 1) {
    literals.reject("stored column by column", "fortran_order False", "True");
  }
  return {.type = type_named(*type, literals), .type_name = *type, .shape = *shape};
}

}  // namespace

NpyHeader npy_header(std::span<const std::byte> bytes, const std::string& file, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Literals whole(text, file, name);
  constexpr std::size_t kVersionAt = 6;
  constexpr std::size_t kLengthAt = 8;
  if (!text.starts_with(kMagic) || text.size() < kLengthAt + 4) {
    whole.reject("not an npy array", "an npy header", fmt::format("{} bytes of something else", text.size()));
  }
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
  const std::size_t version = at(kVersionAt);
  if (version < 1 || version > 3) {
    whole.reject("an npy version that is not known", "1 to 3", std::to_string(version));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= at(kLengthAt + i) << (8 * i);
  }
  const std::size_t begin = kLengthAt + length_bytes;
  if (length > text.size() - begin) {
    whole.reject("its npy header is cut off", fmt::format("{} bytes", length), std::to_string(text.size() - begin));
  }
  Literals literals(text.substr(begin, length), file, name);
  return {.info = info_of(literals), .data = begin + length};
}

}  // namespace attndiff
