#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "harness/compare/report.h"

namespace attndiff {

inline constexpr const char* kReportSchema = "attndiff-report/1";

/// The report as JSON, schema attndiff-report/1 (attndiff-report-1.schema.json beside this header).
/// A number that is not finite is the string "nan", "inf" or "-inf", and its bits stand beside it in hexadecimal under
/// the same key with "_bits" appended: for figures those of the double ("7ff0000000000000"), for values of a tensor
/// those of the stored element ("7fc0"), and these also where the value is finite. Bytes of a path that are not UTF-8
/// become U+FFFD.
[[nodiscard]] std::string json_text(const RunReport& report);

/// Writes json_text() atomically; throws Error(output).
void write_json(const RunReport& report, const std::string& path);

/// One fixture as the report has it. fixture_report_from_json() gives the same report back, every figure bit for bit;
/// only Comparison::bad, which a report does not keep, stays behind. Strings are taken as they are: dump() refuses
/// bytes that are not UTF-8, to_cbor() does not.
[[nodiscard]] nlohmann::ordered_json to_json(const FixtureReport& fixture);

/// The other way. `source` stands for the file in messages and `object` for the place in it. Throws Error(input) naming
/// file, place, expected and found for what is missing, of another type or out of range; keys it does not know are
/// passed over.
[[nodiscard]] FixtureReport fixture_report_from_json(const nlohmann::ordered_json& json, const std::string& source,
                                                     const std::string& object = {});

/// Reads a report that write_json() wrote. Throws Error(input) as fixture_report_from_json() does, for a file that
/// cannot be read or is not JSON, and for another schema than kReportSchema, a newer version among them.
[[nodiscard]] RunReport read_report(const std::string& path);

/// The same from text; `source` stands for the file in messages.
[[nodiscard]] RunReport parse_report(std::string_view text, const std::string& source);

}  // namespace attndiff
