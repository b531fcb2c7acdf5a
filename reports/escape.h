#pragma once

#include <string>
#include <string_view>

namespace attndiff {

/// The text with each byte that is no UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// For XML 1.0 and HTML, as text or inside a quoted attribute. Characters that XML 1.0 cannot hold become U+FFFD.
[[nodiscard]] std::string xml_escaped(std::string_view text);

/// JSON that may stand inside an HTML script element: no '<', '>' or '&' is left in it.
[[nodiscard]] std::string script_safe(std::string_view json);

/// For a paragraph or table cell of GitHub-flavoured Markdown: shown as it is, on one line, mentioning nobody.
[[nodiscard]] std::string markdown_escaped(std::string_view text);

/// The same as a code span, for names and paths.
[[nodiscard]] std::string markdown_code(std::string_view text);

/// A code block, fenced by more backticks than the text has in a row.
[[nodiscard]] std::string markdown_block(std::string_view text);

/// The message of a GitHub workflow command (`::error ...::MESSAGE`), and the value of one of its properties.
[[nodiscard]] std::string workflow_message(std::string_view text);
[[nodiscard]] std::string workflow_property(std::string_view text);

}  // namespace attndiff
