#pragma once

#include <string>

#include "harness/compare/report.h"

namespace attndiff {

/// The report as GitHub-flavoured Markdown, fit for a comment: how the run ended, the first failing comparison with its
/// repro command, the first kMostListed failing ones, what went wrong outside comparisons, and, folded, what each stage
/// used of its bound. Never longer than a comment may be.
[[nodiscard]] std::string markdown_text(const RunReport& report);

/// Failing comparisons that the Markdown lists one by one.
inline constexpr std::size_t kMostListed = 20;

}  // namespace attndiff
