#pragma once

#include <string>

#include "harness/compare/report.h"

namespace attndiff {

struct TableOptions {
  bool verbose = false;  ///< every comparison on a line of its own
  bool quiet = false;    ///< nothing about what passed but its number
  bool colour = false;   ///< verdicts and the last sentence in a terminal's colours
};

/// The report for reading in a terminal. First what agreed, a line for each fixture, stage, candidate and
/// mode (comparisons, elements, how many differ, the worst |d| / bound); then everything else, a line for each
/// comparison: fixture, step (index and positions), layer with its kind, stage, verdict, mismatches, and the worst
/// element's error with index and both values, the reason below it. Fixture errors and problems of the run follow, then
/// the totals. Where a comparison failed, the last line is the command that makes just the first failing one again.
[[nodiscard]] std::string table_text(const RunReport& report, const TableOptions& options = {});

}  // namespace attndiff
