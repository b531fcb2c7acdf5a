#include "harness/run/known_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reference/contract/error.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

using namespace std::chrono_literals;
using std::chrono::year_month_day;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr year_month_day kExpires = 2027y / 1 / 31;
constexpr year_month_day kDayAfter = 2027y / 2 / 1;

const ModelFamily& family() { return family_named("deepseek-v41"); }

const std::string kEntry = R"(
[[known]]
fixture = "tiny-*.h5"
stage = "idx"
owner = "kernels team"
reason = "ties are broken by index until the radix selection lands"
expires = 2027-01-31
)";

std::vector<KnownFailure> parse(const std::string& toml) { return parse_known_failures(toml, "known.toml", family()); }

/// Puts `line` in place of the line of kEntry that sets the same key; adds it where there is none.
std::string with(const std::string& line) {
  std::string toml = kEntry;
  const std::string key = line.substr(0, line.find('='));
  if (const std::size_t at = toml.find("\n" + key); at != std::string::npos) {
    toml.erase(at + 1, toml.find('\n', at + 1) - at);
  }
  return toml + line + "\n";
}

std::string without(const std::string& key) {
  std::string toml = kEntry;
  const std::size_t at = toml.find("\n" + key + " =");
  return toml.erase(at + 1, toml.find('\n', at + 1) - at);
}

ComparisonRecord record(const std::string& stage, Verdict verdict) {
  ComparisonRecord r;
  r.step = 3;
  r.layer_id = 2;
  r.candidate = "cuda";
  r.stage = stage;
  r.result.verdict = verdict;
  return r;
}

/// One fixture: q passes, idx and out fail.
RunReport report(const std::string& path = "some/folder/tiny-ties.h5") {
  RunReport run;
  FixtureReport& fixture = run.fixtures.emplace_back();
  fixture.path = path;
  fixture.verdict = Verdict::fail;
  fixture.comparisons = {record("q", Verdict::pass), record("idx", Verdict::fail), record("out", Verdict::fail)};
  return run;
}

KnownFailureFindings match(const std::string& toml, year_month_day today = kExpires, const RunReport& run = report()) {
  return match_known_failures(run, parse(toml), today);
}

TEST(KnownFailures, ReadsEveryKey) {
  const auto entries = parse(kEntry + "layer = 2\nstep = 3\ncandidate = \"cuda\"\n");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].scope(), "fixture tiny-*.h5, stage idx, layer 2, step 3, candidate cuda");
  EXPECT_EQ(entries[0].text(),
            "known failure, kernels team until 2027-01-31: ties are broken by index until the radix selection lands");
  EXPECT_EQ(entries[0].expires, kExpires);
}

TEST(KnownFailures, AnEmptyListIsAList) { EXPECT_THAT(parse(""), IsEmpty()); }

TEST(KnownFailures, ExcusesThroughItsLastDay) {
  const auto findings = match(kEntry);
  EXPECT_THAT(findings.excused, ElementsAre(KnownFailureMatch{.fixture = 0, .comparison = 1, .entry = 0}));
  EXPECT_THAT(findings.lapsed, IsEmpty());
  EXPECT_THAT(findings.expired, IsEmpty());
  EXPECT_THAT(findings.stale, IsEmpty());
}

TEST(KnownFailures, ExcusesNothingPastItsDate) {
  const auto findings = match(kEntry, kDayAfter);
  EXPECT_THAT(findings.excused, IsEmpty());
  EXPECT_THAT(findings.lapsed, ElementsAre(KnownFailureMatch{.fixture = 0, .comparison = 1, .entry = 0}));
  EXPECT_THAT(findings.expired, ElementsAre(0U));
  EXPECT_THAT(findings.stale, IsEmpty());
  EXPECT_THAT(known_failure_notes(parse(kEntry), findings),
              HasSubstr("expired on 2027-01-31, excuses nothing (fixture tiny-*.h5, stage idx; owner kernels team): 1 "
                        "failing comparison"));
}

TEST(KnownFailures, ALaterUnexpiredEntryStillExcuses) {
  const auto findings = match(kEntry + with("expires = 2028-01-01"), kDayAfter);
  EXPECT_THAT(findings.excused, ElementsAre(KnownFailureMatch{.fixture = 0, .comparison = 1, .entry = 1}));
  EXPECT_THAT(findings.lapsed, IsEmpty());
  EXPECT_THAT(findings.expired, ElementsAre(0U));
}

TEST(KnownFailures, APassingComparisonIsNeverMatched) {
  const auto findings = match(with("stage = \"q\""));
  EXPECT_THAT(findings.excused, IsEmpty());
  EXPECT_THAT(findings.stale, ElementsAre(0U));
  EXPECT_THAT(known_failure_notes(parse(with("stage = \"q\"")), findings), HasSubstr("matched nothing in this run"));
}

TEST(KnownFailures, EveryFailingVerdictCanBeKnown) {
  for (const VerdictInfo& info : verdicts()) {
    RunReport run = report();
    run.fixtures[0].comparisons = {record("idx", info.verdict)};
    EXPECT_EQ(match(kEntry, kExpires, run).excused.size(), fails_run(info.verdict) ? 1U : 0U) << info.name;
  }
}

TEST(KnownFailures, EachFilterNarrows) {
  for (const std::string line : {"layer = 2", "step = 3", "candidate = \"cuda\"", "fixture = \"tiny-tie?.h5\""}) {
    EXPECT_EQ(match(with(line)).excused.size(), 1U) << line;
  }
  for (const std::string line : {"layer = 1", "step = 2", "candidate = \"cuda:1\"", "fixture = \"mid-*\"",
                                 "fixture = \"folder/tiny-ties.h5\"", "fixture = \"TINY-ties.h5\""}) {
    EXPECT_EQ(match(with(line)).excused.size(), 0U) << line;
  }
}

TEST(KnownFailures, RefusesAWrongFile) {
  struct Case {
    std::string toml;
    std::string key;
    std::string expected;
    std::string found;
  };
  const std::vector<Case> cases{
      {without("fixture"), "known[0].fixture", "pattern", "nothing"},
      {without("stage"), "known[0].stage", "stage", "nothing"},
      {without("owner"), "known[0].owner", "who answers", "nothing"},
      {without("reason"), "known[0].reason", "why", "nothing"},
      {without("expires"), "known[0].expires", "a date", "nothing"},
      {with("owner = \"  \""), "known[0].owner", "who answers", "\"  \""},
      {with("candidate = \"\""), "known[0].candidate", "a backend's name", "\"\""},
      {with("stage = \"indexes\""), "known[0].stage", "qr, q, kv_pre", "indexes"},
      {with("stage = 3"), "known[0].stage", "a string", "integer"},
      {with("expires = \"2027-01-31\""), "known[0].expires", "without quotes", "string"},
      {with("expires = 2027-01-31T00:00:00"), "known[0].expires", "a date", "date-time"},
      {with("layer = -1"), "known[0].layer", "from 0", "-1"},
      {with("step = 1.5"), "known[0].step", "an integer", "floating-point"},
      {with("steps = 1"), "known[0].steps", "one of fixture, stage", "steps"},
      {kEntry + with("seed = 1"), "known[1].seed", "one of fixture, stage", "seed"},
      {"[[knwon]]\n", "knwon", "one of known", "knwon"},
      {"known = 3\n", "known", "an array of tables", "integer"},
      {"[[known]\n", "line 1", "", ""},
  };
  for (const Case& wrong : cases) {
    try {
      static_cast<void>(parse(wrong.toml));
      ADD_FAILURE() << "accepted:\n" << wrong.toml;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      EXPECT_EQ(e.details().file, "known.toml");
      EXPECT_THAT(e.details().object, HasSubstr(wrong.key));
      EXPECT_THAT(e.details().expected, HasSubstr(wrong.expected));
      EXPECT_THAT(e.details().found, HasSubstr(wrong.found));
    }
  }
}

TEST(KnownFailures, ReadsAFileAndNamesOneThatIsNotThere) {
  const std::string path = ::testing::TempDir() + "attndiff_known_failures_test.toml";
  std::ofstream(path) << kEntry;
  EXPECT_EQ(read_known_failures(path, family()).size(), 1U);
  ASSERT_TRUE(std::filesystem::remove(path));
  try {
    static_cast<void>(read_known_failures(path, family()));
    ADD_FAILURE() << "a file that does not exist was read";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_EQ(e.details().file, path);
    EXPECT_EQ(e.details().found, "No such file or directory");
  }
}

}  // namespace
}  // namespace attndiff
