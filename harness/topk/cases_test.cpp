#include "harness/topk/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <ostream>

#include "reference/contract/error.h"
#include "reference/topk.h"

namespace attndiff {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kRecorded = ATTNDIFF_SOURCE_DIR "/fixtures/topk/cases.json";

/// A file that goes when the test ends.
class CaseFile {
 public:
  explicit CaseFile(const std::string& text) {
    // ctest runs each test in a process of its own, several at a time: the name tells them apart.
    std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(test.begin(), test.end(), '/', '-');
    path_ = testing::TempDir() + "attndiff-topk-" + test + ".json";
    std::ofstream(path_) << text;
  }
  CaseFile(const CaseFile&) = delete;
  CaseFile& operator=(const CaseFile&) = delete;
  ~CaseFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<TopkCase> read(const std::string& cases) {
  const CaseFile file(R"({"source": "test", "cases": [)" + cases + "]}");
  return read_topk_cases(file.path());
}

/// Reads a text that must be refused, and returns the complaint.
ErrorDetails refusal(const std::string& text) {
  const CaseFile file(text);
  try {
    (void)read_topk_cases(file.path());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.details().file, file.path());
    EXPECT_THAT(error.details().expected, Not(IsEmpty()));
    EXPECT_THAT(error.details().found, Not(IsEmpty()));
    return error.details();
  }
  ADD_FAILURE() << "taken: " << text;
  return {};
}

ErrorDetails refused_case(const std::string& text) { return refusal(R"({"cases": [)" + text + "]}"); }

TEST(TopkCases, TheBuiltInSelectionAgreesWithEveryRecordedCase) {
  const TopkReport report = run_topk_cases(read_topk_cases(kRecorded));
  EXPECT_EQ(report.total, 150);
  EXPECT_EQ(report.passed, 150);
  EXPECT_THAT(report.failures, IsEmpty());
  EXPECT_EQ(report.verdict(), TopkReport::Verdict::pass);
}

TEST(TopkCases, AChangedExpectedIndexFailsItsCaseAlone) {
  const std::vector<TopkCase> recorded = read_topk_cases(kRecorded);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    std::vector<TopkCase> cases = recorded;
    cases[i].index_set.back() += 1;
    const TopkReport report = run_topk_cases(cases);
    EXPECT_EQ(report.verdict(), TopkReport::Verdict::fail);
    EXPECT_EQ(report.passed, 149);
    ASSERT_THAT(report.failures, SizeIs(1));
    EXPECT_EQ(report.failures[0].name, recorded[i].name);
    EXPECT_EQ(report.failures[0].k, recorded[i].k);
    EXPECT_EQ(report.failures[0].n, static_cast<std::int64_t>(recorded[i].values.size()));
    EXPECT_EQ(report.failures[0].expected, cases[i].index_set);
    EXPECT_EQ(report.failures[0].found, recorded[i].index_set);
  }
}

TEST(TopkCases, AMissingOrExtraExpectedIndexFails) {
  std::vector<TopkCase> cases = read(R"({"name": "short", "k": 2, "values": [1, 2, 3], "index_set": [2]},
                                        {"name": "long", "k": 1, "values": [1, 2, 3], "index_set": [1, 2]})");
  const TopkReport report = run_topk_cases(cases);
  ASSERT_THAT(report.failures, SizeIs(2));
  EXPECT_EQ(describe(report.failures[0]), "short (k 2, n 3): expected but not picked none; picked but not expected 1");
  EXPECT_EQ(describe(report.failures[1]), "long (k 1, n 3): expected but not picked 1; picked but not expected none");
}

/// The k largest where of equal values the lowest index goes first, NaN above all.
std::vector<std::int32_t> lowest_index_first(std::span<const float> values, std::int64_t k) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return (std::isnan(values[a]) && !std::isnan(values[b])) || values[a] > values[b];
  });
  order.resize(static_cast<std::size_t>(k));
  std::sort(order.begin(), order.end());
  return order;
}

TEST(TopkCases, TheRecordedCasesCatchWrongSelections) {
  const std::vector<TopkCase> cases = read_topk_cases(kRecorded);
  EXPECT_GT(run_topk_cases(cases, lowest_index_first).failures.size(), 50U) << "ties to the lowest index";

  const auto ignores_nan = [](std::span<const float> values, std::int64_t k) {
    std::vector<float> row(values.begin(), values.end());
    std::replace_if(
        row.begin(), row.end(), [](float v) { return std::isnan(v); }, -1e30F);
    return reference::topk_set(row, k);
  };
  EXPECT_THAT(run_topk_cases(cases, ignores_nan).failures, Not(IsEmpty())) << "NaN below everything";
}

TEST(TopkCases, NoCaseAtAllIsNotAPass) {
  const TopkReport report = run_topk_cases(read(""));
  EXPECT_EQ(report.total, 0);
  EXPECT_EQ(report.verdict(), TopkReport::Verdict::nothing_checked);
}

TEST(TopkCases, ReadsNumbersAndNamedValues) {
  const std::vector<TopkCase> cases =
      read(R"({"name": "a", "k": 1, "values": [1.5, -2, "inf", "-inf", "nan"], "index_set": [4], "note": "kept out"})");
  ASSERT_THAT(cases, SizeIs(1));
  EXPECT_EQ(cases[0].name, "a");
  EXPECT_EQ(cases[0].k, 1);
  EXPECT_THAT(cases[0].index_set, ElementsAre(4));
  ASSERT_THAT(cases[0].values, SizeIs(5));
  EXPECT_EQ(cases[0].values[0], 1.5F);
  EXPECT_EQ(cases[0].values[1], -2.0F);
  EXPECT_EQ(cases[0].values[2], std::numeric_limits<float>::infinity());
  EXPECT_EQ(cases[0].values[3], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(cases[0].values[4]));
}

TEST(TopkCases, BitsWinOverValues) {
  const std::vector<TopkCase> cases =
      read(R"({"name": "a", "k": 1, "values": [0, 0], "bits": ["80000000", "3F800001"], "index_set": [1]},
              {"name": "b", "k": 0, "bits": ["7fc00001"], "index_set": []})");
  ASSERT_THAT(cases, SizeIs(2));
  EXPECT_TRUE(std::signbit(cases[0].values[0]));
  EXPECT_EQ(cases[0].values[1], 0x1.000002p0F);
  EXPECT_TRUE(std::isnan(cases[1].values[0]));
  EXPECT_EQ(run_topk_cases(cases).verdict(), TopkReport::Verdict::pass);
}

TEST(TopkCases, RefusesFilesOfAnotherForm) {
  EXPECT_THAT(refusal("").problem, HasSubstr("cannot be read"));
  EXPECT_THAT(refusal(R"({"cases": [)").problem, HasSubstr("not JSON"));
  EXPECT_THAT(refusal(R"({"cases": [{"name": "a", "k": 1, "values": [1e999], "index_set": [0]}]})").problem,
              HasSubstr("not JSON"));
  EXPECT_THAT(refusal("[1, 2]").found, HasSubstr("array"));
  EXPECT_THAT(refusal("{}").problem, HasSubstr("'cases'"));
  EXPECT_THAT(refusal(R"({"cases": {}})").expected, HasSubstr("array"));
}

TEST(TopkCases, RefusesAFileThatIsNotThere) {
  const std::string folder = testing::TempDir();
  for (const std::string& path : {folder, folder + "attndiff-topk-no-such-file.json"}) {
    try {
      (void)read_topk_cases(path);
      ADD_FAILURE() << "taken: " << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_EQ(error.details().file, path);
    }
  }
}

struct BadCase {
  const char* text;
  const char* object;
  const char* problem;
  const char* expected;
  const char* found;

  friend void PrintTo(const BadCase& c, std::ostream* stream) { *stream << c.text; }
};

class TopkBadCase : public testing::TestWithParam<BadCase> {};

TEST_P(TopkBadCase, IsRefusedByName) {
  const ErrorDetails details = refused_case(GetParam().text);
  EXPECT_THAT(details.object, HasSubstr(GetParam().object));
  EXPECT_THAT(details.problem, HasSubstr(GetParam().problem));
  EXPECT_THAT(details.expected, HasSubstr(GetParam().expected));
  EXPECT_THAT(details.found, HasSubstr(GetParam().found));
}

INSTANTIATE_TEST_SUITE_P(
    Forms, TopkBadCase,
    testing::Values(
        BadCase{R"(7)", "cases[0]", "wrong type", "object", "number 7"},
        BadCase{R"({"k": 1, "values": [1], "index_set": [0]})", "cases[0]", "'name' is missing", "string", "no such"},
        BadCase{R"({"name": 3, "k": 1, "values": [1], "index_set": [0]})", "cases[0]", "'name'", "string", "number 3"},
        BadCase{R"({"name": "a", "values": [1], "index_set": [0]})", "(a)", "'k' is missing", "integer", "no such"},
        BadCase{R"({"name": "a", "k": 1, "index_set": [0]})", "(a)", "row is missing", "'values' or 'bits'", "neither"},
        BadCase{R"({"name": "a", "k": 1, "values": [1]})", "(a)", "'index_set' is missing", "array", "no such"},
        BadCase{R"({"name": "a", "k": -1, "values": [1], "index_set": []})", "(a)", "'k'", "from 0 to 1", "-1"},
        BadCase{R"({"name": "a", "k": 2, "values": [1], "index_set": [0]})", "(a)", "'k'", "from 0 to 1", "2"},
        BadCase{R"({"name": "a", "k": 18446744073709551615, "values": [1], "index_set": [0]})", "(a)", "'k'",
                "from 0 to 1", "18446744073709551615"},
        BadCase{R"({"name": "a", "k": 1.0, "values": [1], "index_set": [0]})", "(a)", "'k'", "integer", "1.0"},
        BadCase{R"({"name": "a", "k": "1", "values": [1], "index_set": [0]})", "(a)", "'k'", "integer", "string"},
        BadCase{R"({"name": "a", "k": true, "values": [1], "index_set": [0]})", "(a)", "'k'", "integer", "boolean"},
        BadCase{R"({"name": "a", "k": 1, "values": 1, "index_set": [0]})", "(a)", "'values'", "array", "number"},
        BadCase{R"({"name": "a", "k": 1, "values": [1, null], "index_set": [0]})", "(a)", "values[1]", "\"nan\"",
                "null"},
        BadCase{R"({"name": "a", "k": 1, "values": ["Infinity"], "index_set": [0]})", "(a)", "values[0]", "\"inf\"",
                "Infinity"},
        BadCase{R"({"name": "a", "k": 1, "values": [3.5e38], "index_set": [0]})", "(a)", "values[0]", "float32",
                "3.5e+38"},
        BadCase{R"({"name": "a", "k": 1, "bits": "3f800000", "index_set": [0]})", "(a)", "'bits'", "array", "string"},
        BadCase{R"({"name": "a", "k": 1, "bits": ["3f80000"], "index_set": [0]})", "(a)", "bits[0]", "8 hex",
                "3f80000"},
        BadCase{R"({"name": "a", "k": 1, "bits": ["3f80000g"], "index_set": [0]})", "(a)", "bits[0]", "8 hex",
                "3f80000g"},
        BadCase{R"({"name": "a", "k": 1, "bits": [1065353216], "index_set": [0]})", "(a)", "bits[0]", "8 hex",
                "number"},
        BadCase{R"({"name": "a", "k": 1, "values": [1], "bits": ["3f800000", "00000000"], "index_set": [0]})", "(a)",
                "differ in length", "1 bits", "2 bits"},
        BadCase{R"({"name": "a", "k": 1, "values": [1], "index_set": 0})", "(a)", "'index_set'", "array", "number 0"},
        BadCase{R"({"name": "a", "k": 1, "values": [1], "index_set": [0.5]})", "(a)", "index_set[0]", "integer", "0.5"},
        BadCase{R"({"name": "a", "k": 1, "values": [1], "index_set": [4294967296]})", "(a)", "index_set[0]", "integer",
                "4294967296"},
        BadCase{R"({"name": "a", "k": 1, "values": [1], "index_set": [0], "path": "heap"})", "(a)", "'path'",
                "nth_element", "heap"},
        BadCase{R"({"name": "a", "k": 1, "values": [1], "index_set": [0], "path": 1})", "(a)", "'path'", "string",
                "number"},
        BadCase{R"({"name": "a", "k": 1, "values": [1], "index_set": [0]}, {"name": "a", "k": 1, "values": [1],
                 "index_set": [0]})",
                "cases[1]", "one name", "its own", "a"}));

}  // namespace
}  // namespace attndiff
