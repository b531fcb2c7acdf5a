#include "reports/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "reports/sample_report.h"

namespace attndiff {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;
using ::testing::Not;

/// Checks a document against the part of JSON Schema that the committed schema uses; a keyword it does not know is a
/// violation too, so that the schema cannot outgrow it unseen.
class SchemaCheck {
 public:
  explicit SchemaCheck(json root) : root_(std::move(root)) {}

  std::vector<std::string> violations(const json& document) {
    found_.clear();
    check(root_, document, "");
    return found_;
  }

 private:
  static std::string under(std::string at, const std::string& key) { return at.append("/").append(key); }

  void report(const std::string& at, const std::string& what) { found_.push_back(at + ": " + what); }

  [[nodiscard]] bool agrees(const json& schema, const json& value) const {
    SchemaCheck inner(root_);
    inner.check(schema, value, "");
    return inner.found_.empty();
  }

  void check(const json& schema, const json& value, const std::string& at) {
    for (const auto& [keyword, rule] : schema.items()) {
      check_keyword(keyword, rule, schema, value, at);
    }
  }

  void check_keyword(const std::string& keyword, const json& rule, const json& schema, const json& value,
                     const std::string& at) {
    if (keyword == "$ref") {
      check(root_.at(json::json_pointer(rule.get<std::string>().substr(1))), value, at);
    } else if (keyword == "type") {
      check_type(rule.get<std::string>(), value, at);
    } else if (keyword == "const") {
      if (value != rule) {
        report(at, "is not " + rule.dump());
      }
    } else if (keyword == "enum") {
      if (std::find(rule.begin(), rule.end(), value) == rule.end()) {
        report(at, value.dump() + " is none of " + rule.dump());
      }
    } else if (keyword == "minimum") {
      if (value.is_number() && value < rule) {
        report(at, value.dump() + " is below " + rule.dump());
      }
    } else if (keyword == "anyOf") {
      if (std::none_of(rule.begin(), rule.end(), [&](const json& s) { return agrees(s, value); })) {
        report(at, value.dump() + " agrees with no alternative");
      }
    } else if (keyword == "items") {
      for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
        check(rule, value[i], under(at, std::to_string(i)));
      }
    } else if (keyword == "required") {
      for (const json& key : rule) {
        if (value.is_object() && !value.contains(key.get<std::string>())) {
          report(at, "lacks " + key.dump());
        }
      }
    } else if (keyword == "additionalProperties") {
      check_members(rule, schema, value, at);
    } else if (keyword == "properties") {
      for (const auto& [key, member] : rule.items()) {
        if (value.is_object() && value.contains(key)) {
          check(member, value.at(key), under(at, key));
        }
      }
    } else if (keyword != "$schema" && keyword != "$id" && keyword != "$defs" && keyword != "title" &&
               keyword != "description") {
      report(at, "schema keyword " + keyword + " is not checked here");
    }
  }

  void check_type(const std::string& type, const json& value, const std::string& at) {
    const bool fits = (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
                      (type == "string" && value.is_string()) || (type == "integer" && value.is_number_integer()) ||
                      (type == "number" && value.is_number()) || (type == "boolean" && value.is_boolean()) ||
                      (type == "null" && value.is_null());
    if (!fits) {
      report(at, value.dump() + " is no " + type);
    }
  }

  void check_members(const json& rule, const json& schema, const json& value, const std::string& at) {
    const json known = schema.value("properties", json::object());
    for (const auto& [key, member] : value.items()) {
      if (known.contains(key)) {
        continue;
      }
      if (rule.is_boolean()) {
        report(at, "unknown key " + key);
      } else {
        check(rule, member, under(at, key));
      }
    }
  }

  json root_;
  std::vector<std::string> found_;
};

SchemaCheck schema() {
  std::ifstream in(std::string(ATTNDIFF_SOURCE_DIR) + "/reports/attndiff-report-1.schema.json");
  return SchemaCheck(json::parse(in));
}

RunReport everything() {
  RunReport r = test::run_of({test::fixture("a.h5", {test::passing("q", 0), test::detailed("out", 1)}),
                              test::fixture("b.h5", {}, "b.h5: /config: cannot be read"), test::fixture("c.h5", {})});
  for (const VerdictInfo& v : verdicts()) {
    ComparisonRecord c = test::passing("o", 2);
    c.result.verdict = v.verdict;
    c.result.worst.reset();
    c.result.bound_ratio.reset();
    r.fixtures[0].comparisons.push_back(c);
  }
  r.fixtures[0].timings.push_back({.backend = "cpu", .mode = "reference", .seconds = {0.5}});
  r.settings = {{"layers", "3"}};
  r.backends = {{"cpu", "Eigen"}};
  for (const ErrorKind kind : {ErrorKind::usage, ErrorKind::input, ErrorKind::refused, ErrorKind::unavailable,
                               ErrorKind::output, ErrorKind::internal}) {
    r.problems.push_back({kind, "a problem"});
  }
  return r;
}

TEST(Json, AgreesWithTheCommittedSchema) {
  SchemaCheck check = schema();
  EXPECT_THAT(check.violations(json::parse(json_text(everything()))), IsEmpty());
  EXPECT_THAT(check.violations(json::parse(json_text(RunReport{}))), IsEmpty());
}

TEST(Json, TheSchemaRefusesWhatIsWrong) {
  SchemaCheck check = schema();
  const json good = json::parse(json_text(everything()));
  const auto broken = [&](const char* pointer, const json& value) {
    json j = good;
    j[json::json_pointer(pointer)] = value;
    return check.violations(j);
  };
  EXPECT_THAT(broken("/schema", "attndiff-report/2"), Not(IsEmpty()));
  EXPECT_THAT(broken("/extra", 1), Not(IsEmpty()));
  EXPECT_THAT(broken("/fixtures/0/verdict", "passed"), Not(IsEmpty()));
  EXPECT_THAT(broken("/fixtures/0/comparisons/0/count", -1), Not(IsEmpty()));
  EXPECT_THAT(broken("/fixtures/0/comparisons/0/max_abs", nullptr), Not(IsEmpty()));
  EXPECT_THAT(broken("/fixtures/0/comparisons/0/worst", json::object()), Not(IsEmpty()));
  json lacking = good;
  lacking["fixtures"][0]["comparisons"][0].erase("repro");
  EXPECT_THAT(check.violations(lacking), Not(IsEmpty()));
}

TEST(Json, NumbersThatAreNotFiniteAreStringsWithTheirBits) {
  const json j = json::parse(json_text(test::run_of({test::fixture("a.h5", {test::failing("out", 1)})})));
  const json& c = j["fixtures"][0]["comparisons"][0];
  EXPECT_EQ(c["worst"]["reference"], 0.5);
  EXPECT_EQ(c["worst"]["reference_bits"], "3f00");
  EXPECT_EQ(c["worst"]["candidate"], "nan");
  EXPECT_EQ(c["worst"]["candidate_bits"], "7fc0");
  EXPECT_EQ(c["worst"]["index"], json({0, 3}));
  EXPECT_EQ(c["max_abs"], "inf");
  EXPECT_EQ(c["max_abs_bits"], "7ff0000000000000");
  ComparisonRecord negative = test::failing("out", 1);
  negative.result.worst->candidate = -std::numeric_limits<double>::infinity();
  negative.result.worst->candidate_bits = "ff80";
  const json k = json::parse(json_text(test::run_of({test::fixture("a.h5", {negative})})));
  EXPECT_EQ(k["fixtures"][0]["comparisons"][0]["worst"]["candidate"], "-inf");
}

TEST(Json, TotalsCountByVerdictAndByExitReason) {
  const json j = json::parse(json_text(test::run_of(
      {test::fixture("a.h5", {test::passing("q", 0), test::failing("out", 1)}), test::fixture("b.h5", {}, "torn")})));
  EXPECT_EQ(j["totals"]["exit_reason"], "failed");
  EXPECT_EQ(j["totals"]["by_verdict"]["pass"], 1);
  EXPECT_EQ(j["totals"]["by_verdict"]["fail"], 1);
  EXPECT_EQ(j["totals"]["by_verdict"]["error"], 1);
  EXPECT_EQ(j["totals"]["by_exit_reason"]["failed"], 1);
  EXPECT_EQ(j["totals"]["by_exit_reason"]["usage_or_input"], 1);
  EXPECT_EQ(j["totals"]["comparisons"], 2);
  EXPECT_EQ(j["fixtures"][1]["error"], "torn");
  EXPECT_FALSE(j["fixtures"][0].contains("error"));
}

TEST(Json, AnExactComparisonHasNoBound) {
  ComparisonRecord c = test::passing("idx", 0);
  c.result.bound_ratio.reset();
  const json j = json::parse(json_text(test::run_of({test::fixture("a.h5", {c})})));
  EXPECT_FALSE(j["fixtures"][0]["comparisons"][0].contains("bound_ratio"));
}

TEST(Json, APathThatIsNotUtf8IsStillAReport) {
  const std::string text = json_text(test::run_of({test::fixture("a\xff.h5", {})}));
  EXPECT_EQ(json::parse(text)["fixtures"][0]["path"], "a\xEF\xBF\xBD.h5");
}

TEST(Json, IsWrittenWhole) {
  const std::string path = ::testing::TempDir() + "attndiff_json_test.json";
  const RunReport report = everything();
  write_json(report, path);
  std::ifstream in(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), json_text(report));
  ASSERT_EQ(std::remove(path.c_str()), 0);
}

}  // namespace
}  // namespace attndiff
