#pragma once

#include <string>

#include "reports/changes.h"

namespace attndiff {

/// Changes for a terminal: what got worse, in tables, then what got better, then a sentence. The last line says whether
/// the gate regressed, or that the reports have nothing in common; on newly failing comparisons it is the repro command
/// of the first.
[[nodiscard]] std::string changes_table(const Changes& changes, bool colour);

/// The same as GitHub-flavoured Markdown, fit for a comment, and as one HTML file that needs nothing else.
[[nodiscard]] std::string changes_markdown(const Changes& changes);
[[nodiscard]] std::string changes_html(const Changes& changes);

}  // namespace attndiff
