#include "reference/contract/printable.h"

namespace attndiff {
namespace {

constexpr unsigned kSpace = 0x20;
constexpr unsigned kDelete = 0x7f;

std::string escaped(unsigned byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  switch (byte) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 0xfU]};
  }
}

/// Whether the control characters U+0080 to U+009F, two bytes in UTF-8, begin here.
bool second_controls_at(std::string_view text, std::size_t i) noexcept {
  constexpr unsigned kLead = 0xc2;
  constexpr unsigned kFirst = 0x80;
  constexpr unsigned kLast = 0x9f;
  if (static_cast<unsigned char>(text[i]) != kLead || i + 1 == text.size()) {
    return false;
  }
  const auto next = static_cast<unsigned char>(text[i + 1]);
  return kFirst <= next && next <= kLast;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (second_controls_at(text, i)) {
      line += escaped(byte) + escaped(static_cast<unsigned char>(text[++i]));
    } else if (byte < kSpace || byte == kDelete) {
      line += escaped(byte);
    } else {
      line += text[i];
    }
  }
  return line;
}

}  // namespace attndiff
