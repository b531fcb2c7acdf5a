#include "reports/escape.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace attndiff {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Replaces each character that `replacement` has something for.
template <typename Replacement>
std::string replaced(std::string_view text, Replacement replacement) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const std::string_view instead = replacement(c);
    if (instead.empty()) {
      out += c;
    } else {
      out += instead;
    }
  }
  return out;
}

bool is_control(char c) noexcept {
  constexpr unsigned char kSpace = 0x20;
  return static_cast<unsigned char>(c) < kSpace;
}

std::size_t longest_run_of_backticks(std::string_view text) noexcept {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

std::string on_one_line(std::string_view text) {
  return replaced(valid_utf8(text), [](char c) { return is_control(c) ? std::string_view(" ") : std::string_view(); });
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

std::string xml_escaped(std::string_view text) {
  return replaced(valid_utf8(text), [](char c) -> std::string_view {
    switch (c) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '"':
        return "&quot;";
      case '\'':
        return "&#39;";
      case '\n':
        return "&#10;";  // a plain one inside an attribute is read as a blank
      case '\t':
        return "&#9;";
      default:
        return is_control(c) ? kReplacement : std::string_view();
    }
  });
}

std::string script_safe(std::string_view json) {
  return replaced(json, [](char c) -> std::string_view {
    return c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : c == '&' ? "\\u0026" : "";
  });
}

std::string markdown_escaped(std::string_view text) {
  return replaced(on_one_line(text), [](char c) -> std::string_view {
    switch (c) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '@':
        return "&#64;";
      case '|':
        return "&#124;";
      case '\\':
        return "\\\\";
      case '`':
        return "\\`";
      case '*':
        return "\\*";
      case '_':
        return "\\_";
      case '[':
        return "\\[";
      case ']':
        return "\\]";
      case '#':
        return "\\#";
      case '~':
        return "\\~";
      default:
        return "";
    }
  });
}

std::string markdown_code(std::string_view text) {
  // A bar would end a table's cell even inside a code span; GitHub takes the backslash away again.
  const std::string line =
      replaced(on_one_line(text), [](char c) { return c == '|' ? std::string_view("\\|") : std::string_view(); });
  const std::size_t run = longest_run_of_backticks(line);
  if (run == 0) {
    return "`" + (line.empty() ? std::string(" ") : line) + "`";
  }
  const std::string fence(run + 1, '`');
  return fence + " " + line + " " + fence;
}

std::string markdown_block(std::string_view text) {
  constexpr std::size_t kShortest = 3;
  const std::string fence(std::max(kShortest, longest_run_of_backticks(text) + 1), '`');
  return fence + "\n" + valid_utf8(text) + "\n" + fence + "\n";
}

std::string workflow_message(std::string_view text) {
  return replaced(text, [](char c) -> std::string_view {
    return c == '%' ? "%25" : c == '\r' ? "%0D" : c == '\n' ? "%0A" : "";
  });
}

std::string workflow_property(std::string_view text) {
  return replaced(workflow_message(text), [](char c) -> std::string_view {
    return c == ':' ? "%3A" : c == ',' ? "%2C" : "";
  });
}

}  // namespace attndiff
