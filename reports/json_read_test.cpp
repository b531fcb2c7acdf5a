#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "reference/contract/error.h"
#include "reports/json.h"
#include "reports/sample_report.h"

namespace attndiff {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }

FixtureReport every_field() {
  FixtureReport f = test::fixture("odd \"name\" </script>\xff.h5", {test::passing("q", 0), test::detailed("out", 1)});
  f.error = "torn";
  f.coverage = {{"ring_wraps", 3}, {"carried_groups", 0}};
  f.uncovered = {"carried_groups"};
  f.timings = {{.backend = "cpu", .mode = "reference", .seconds = {0.1, 0.25}},
               {.backend = "c", .mode = "free", .seconds = {}}};
  f.comparisons[0].known_failure = "somebody";
  f.comparisons[0].location = "head 1";
  for (const VerdictInfo& v : verdicts()) {
    ComparisonRecord c = test::passing("o", 2);
    c.result.verdict = v.verdict;
    c.result.worst.reset();
    c.result.bound_ratio.reset();
    c.result.counted = false;
    f.comparisons.push_back(c);
  }
  f.verdict = overall_verdict(f);
  return f;
}

/// Bytes that are not UTF-8 survive CBOR, the form in which a report travels between processes.
FixtureReport through_cbor(const FixtureReport& f) {
  return fixture_report_from_json(Json::from_cbor(Json::to_cbor(to_json(f))), "pipe");
}

std::string message_of(const std::string& text) {
  try {
    static_cast<void>(parse_report(text, "old.json"));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_EQ(e.details().file, "old.json");
    return e.what();
  }
  return "was read";
}

/// A report with one value replaced.
std::string broken(const char* pointer, const Json& value) {
  Json j = Json::parse(json_text(test::run_of({test::fixture("a.h5", {test::detailed("out", 1)})})));
  j[Json::json_pointer(pointer)] = value;
  return j.dump();
}

TEST(JsonRead, GivesBackEveryFieldOfAFixture) {
  const FixtureReport f = every_field();
  const FixtureReport back = through_cbor(f);
  EXPECT_EQ(to_json(back), to_json(f));
  EXPECT_EQ(back.path, f.path);
  EXPECT_EQ(back.verdict, f.verdict);
  EXPECT_EQ(back.error, f.error);
  EXPECT_EQ(back.coverage, f.coverage);
  EXPECT_EQ(back.uncovered, f.uncovered);
  ASSERT_EQ(back.timings.size(), 2U);
  EXPECT_EQ(back.timings[0].seconds, f.timings[0].seconds);
  ASSERT_EQ(back.comparisons.size(), f.comparisons.size());
  for (std::size_t i = 0; i < f.comparisons.size(); ++i) {
    EXPECT_EQ(back.comparisons[i].result.verdict, f.comparisons[i].result.verdict);
    EXPECT_EQ(back.comparisons[i].result.counted, f.comparisons[i].result.counted);
    EXPECT_EQ(back.comparisons[i].result.worst.has_value(), f.comparisons[i].result.worst.has_value());
  }
  EXPECT_EQ(back.comparisons[0].known_failure, "somebody");
  EXPECT_EQ(back.comparisons[0].location, "head 1");
  EXPECT_EQ(back.comparisons[0].detail, nullptr);
}

TEST(JsonRead, GivesBackDetails) {
  const ComparisonRecord before = test::detailed("out", 1);
  const FixtureReport back = through_cbor(test::fixture("a.h5", {before}));
  ASSERT_NE(back.comparisons[0].detail, nullptr);
  const ComparisonDetail& d = *back.comparisons[0].detail;
  EXPECT_EQ(d.shape, before.detail->shape);
  EXPECT_EQ(d.histogram.below, before.detail->histogram.below);
  ASSERT_EQ(d.maps.size(), before.detail->maps.size());
  EXPECT_EQ(d.maps[0].rows, before.detail->maps[0].rows);
  ASSERT_EQ(d.worst.size(), before.detail->worst.size());
  EXPECT_EQ(d.worst[0].flat, before.detail->worst[0].flat);
  ASSERT_EQ(d.disputed.size(), before.detail->disputed.size());
  EXPECT_EQ(d.disputed[0].positions.size(), before.detail->disputed[0].positions.size());
  EXPECT_EQ(d.disputed[0].candidate_margin.has_value(), false);
}

TEST(JsonRead, GivesBackNumbersBitForBit) {
  const double figures[] = {0.0,
                            -0.0,
                            0.1,
                            5e-324,
                            std::numeric_limits<double>::max(),
                            kInf,
                            -kInf,
                            std::bit_cast<double>(std::uint64_t{0x7ff8000000000001}),
                            std::bit_cast<double>(std::uint64_t{0xfff8000000000000})};
  for (const double v : figures) {
    ComparisonRecord c = test::failing("out", 1);
    c.result.max_abs = c.result.rel_l2 = c.result.max_ulp = v;
    c.result.bound_ratio = v;
    c.result.worst_row = ComparedRow{.index = {1}, .rel_l2 = v};
    c.result.worst->reference = v;
    c.result.worst->reference_bits = "abcd";
    for (const FixtureReport& back :
         {through_cbor(test::fixture("a.h5", {c})),
          parse_report(json_text(test::run_of({test::fixture("a.h5", {c})})), "text").fixtures[0]}) {
      const Comparison& r = back.comparisons[0].result;
      EXPECT_EQ(bits(r.max_abs), bits(v));
      EXPECT_EQ(bits(r.max_ulp), bits(v));
      EXPECT_EQ(bits(r.rel_l2), bits(v));
      EXPECT_EQ(bits(r.bound_ratio.value()), bits(v));
      EXPECT_EQ(bits(r.worst_row.value().rel_l2), bits(v));
      EXPECT_EQ(r.worst.value().reference_bits, "abcd");
      EXPECT_EQ(std::isnan(r.worst.value().reference), std::isnan(v));
      if (!std::isnan(v)) {
        EXPECT_EQ(bits(r.worst.value().reference), bits(v));
      }
    }
  }
}

TEST(JsonRead, AnEmptyFixtureAndAnEmptyRun) {
  EXPECT_EQ(to_json(through_cbor({})), to_json(FixtureReport{}));
  EXPECT_EQ(json_text(parse_report(json_text({}), "empty")), json_text({}));
}

TEST(JsonRead, GivesBackTheWholeRun) {
  RunReport r = test::run_of({test::fixture("a.h5", {test::passing("q", 0), test::detailed("out", 1)})});
  r.settings = {{"stages", "q,out"}};
  r.backends = {{"cpu", "Eigen 3.4"}};
  r.unanswered = {"stage lse"};
  for (const ErrorKind kind : {ErrorKind::usage, ErrorKind::input, ErrorKind::refused, ErrorKind::unavailable,
                               ErrorKind::output, ErrorKind::internal}) {
    r.problems.push_back({kind, "a problem"});
  }
  const RunReport back = parse_report(json_text(r), "text");
  EXPECT_EQ(json_text(back), json_text(r));
  ASSERT_EQ(back.problems.size(), 6U);
  EXPECT_EQ(back.problems[2].kind, ErrorKind::refused);
}

TEST(JsonRead, ReadsAReportOfBeforeTheAddedKeys) {
  Json j = Json::parse(json_text(test::run_of({test::fixture("a.h5", {test::passing("q", 0)})})));
  j.erase("settings");
  j.erase("backends");
  j["fixtures"][0].erase("timings");
  j["fixtures"][0]["comparisons"][0].erase("counted");
  j["fixtures"][0]["comparisons"][0]["worst"].erase("flat");
  const RunReport back = parse_report(j.dump(), "text");
  EXPECT_TRUE(back.fixtures[0].comparisons[0].result.counted);
  EXPECT_TRUE(back.fixtures[0].timings.empty());
}

TEST(JsonRead, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(message_of("{\"schema\""), HasSubstr("old.json: byte"));
  EXPECT_THAT(message_of("[1]"), HasSubstr("old.json: /: not what a report has here (expected an object"));
  EXPECT_THAT(message_of("{}"), HasSubstr("lacks a key (expected \"schema\")"));
  EXPECT_THAT(message_of(R"({"schema": 1e999})"), HasSubstr("old.json"));
  EXPECT_THAT(
      message_of(broken("/schema", "attndiff-report/2")),
      HasSubstr("/schema: not what a report has here (expected attndiff-report/1, found \"attndiff-report/2\")"));
  EXPECT_THAT(message_of(broken("/fixtures", 3)),
              HasSubstr("/fixtures: not what a report has here (expected an array"));
  EXPECT_THAT(message_of(broken("/fixtures/0/comparisons/0/count", -1)),
              HasSubstr("/fixtures/0/comparisons/0/count: not what a report has here (expected a whole number from 0 "
                        "on, found -1)"));
  EXPECT_THAT(message_of(broken("/fixtures/0/comparisons/0/count", 1.5)), HasSubstr("found 1.5"));
  EXPECT_THAT(message_of(broken("/fixtures/0/comparisons/0/count", 18446744073709551615U)), HasSubstr("found 1844"));
  EXPECT_THAT(message_of(broken("/fixtures/0/comparisons/0/verdict", "passed")), HasSubstr("expected a verdict"));
  EXPECT_THAT(message_of(broken("/fixtures/0/comparisons/0/max_abs", "infinite")), HasSubstr("expected a number"));
  EXPECT_THAT(message_of(broken("/fixtures/0/comparisons/0/max_abs_bits", "xyz")), HasSubstr("bits of a double"));
  EXPECT_THAT(message_of(broken("/fixtures/0/comparisons/0/detail/maps/0/rows/0", 1)),
              HasSubstr("/detail/maps/0/rows/0: not what a report has here (expected a string, found 1)"));
  EXPECT_THAT(message_of(broken("/problems/0", Json{{"kind", "odd"}, {"message", "m"}})), HasSubstr("a kind of error"));
}

TEST(JsonRead, AFileThatCannotBeRead) {
  try {
    static_cast<void>(read_report("/nowhere/report.json"));
    FAIL() << "was read";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_THAT(e.what(), HasSubstr("/nowhere/report.json: cannot be read"));
  }
}

}  // namespace
}  // namespace attndiff
