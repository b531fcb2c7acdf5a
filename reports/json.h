#pragma once

#include <string>

#include "harness/compare/report.h"

namespace attndiff {

inline constexpr const char* kReportSchema = "attndiff-report/1";

/// The report as JSON, schema attndiff-report/1 (attndiff-report-1.schema.json beside this header).
/// A number that is not finite is the string "nan", "inf" or "-inf", and its bits stand beside it in hexadecimal under
/// the same key with "_bits" appended: for values of a tensor those of the stored element ("7fc0"), for figures those
/// of the double ("7ff0000000000000"). Bytes of a path that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_text(const RunReport& report);

/// Writes json_text() atomically; throws Error(output).
void write_json(const RunReport& report, const std::string& path);

}  // namespace attndiff
