#include "harness/compare/tolerance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "harness/compare/test_tensors.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

using test::family;
using test::stage;
using ::testing::HasSubstr;

TEST(Tolerance, BuiltInCoversEveryStageWithAReasonForEachNumber) {
  const Tolerances tolerances = Tolerances::defaults(family());
  for (const StageInfo& s : family().stages) {
    const StageTolerance& t = tolerances.at(s);
    const bool discrete = s.kind == StageKind::index || s.kind == StageKind::mask;
    EXPECT_EQ(t.kind == ToleranceKind::exact, discrete) << s.name;
    if (discrete) {
      EXPECT_FALSE(t.reasons.at("exact").empty()) << s.name;
    }
    for (const ToleranceNumber& number : numbers_of(t.kind)) {
      const auto reason = t.reasons.find(number.key);
      ASSERT_NE(reason, t.reasons.end()) << s.name << " " << number.key;
      EXPECT_GT(reason->second.size(), 20U) << s.name << " " << number.key;
    }
    EXPECT_FALSE(t.text().empty());
  }
}

TEST(Tolerance, BuiltInFollowsTheMeasurements) {
  const Tolerances tolerances = Tolerances::defaults(family());
  const StageTolerance& out = tolerances.at(stage("out"));
  EXPECT_EQ(out.kind, ToleranceKind::bf16);
  EXPECT_EQ(out.units, 1);
  EXPECT_EQ(out.rms_fraction, 0x1p-6);
  EXPECT_EQ(out.max_different_fraction, 0.02);
  EXPECT_EQ(tolerances.at(stage("kv")).kind, ToleranceKind::quantised);
  EXPECT_EQ(tolerances.at(stage("kv")).steps, 1);
  EXPECT_EQ(tolerances.at(stage("rows")).kind, ToleranceKind::quantised);
  EXPECT_EQ(tolerances.at(stage("lse")).kind, ToleranceKind::f32);
  EXPECT_EQ(out.text(), "|d| <= 1 unit + 0.015625 rms(row); row L2 <= 0.015625; at most 2 % (or 6) differ");
}

TEST(Tolerance, AMarginForUncertifiedSelectionsComesWithALimitOnRows) {
  const auto parse = [](const std::string& toml) { return Tolerances::parse(toml, "t.toml", family()); };
  const std::string margin = "uncertified_margin = { value = 0.5, reason = \"measured\" }\n";
  const std::string rows = "uncertified_rows = { value = 0.25, reason = \"measured\" }\n";
  const StageTolerance t = parse("[stages.selection]\n" + margin + rows).at(stage("selection"));
  EXPECT_TRUE(t.allows_uncertified());
  EXPECT_EQ(t.uncertified_margin, 0.5);
  EXPECT_EQ(t.uncertified_rows, 0.25);
  EXPECT_FALSE(parse("").at(stage("selection")).allows_uncertified());
  const auto error = [&](const std::string& toml) -> std::string {
    try {
      parse(toml);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(error("[stages.idx]\n" + margin), HasSubstr("stages.idx.uncertified_rows"));
  EXPECT_THAT(error("[stages.candidates]\n" + margin + rows), HasSubstr("only a selection can be uncertified"));
  EXPECT_THAT(error("[stages.o]\n" + margin + rows), HasSubstr("unknown key"));
}

TEST(Tolerance, AllowedDifferencesAreAShareOrTheSmallCount) {
  const Tolerances tolerances = Tolerances::defaults(family());
  const StageTolerance& t = tolerances.at(stage("o"));
  EXPECT_EQ(t.allowed_differences(2), 6);
  EXPECT_EQ(t.allowed_differences(100), 6);
  EXPECT_EQ(t.allowed_differences(350), 7);  // 0.02 * 350 is 7, whatever it is in binary
  EXPECT_EQ(t.allowed_differences(399), 7);
  EXPECT_EQ(t.allowed_differences(76800), 1536);
}

TEST(Tolerance, AnOverrideChangesTheStageItNamesAndNoOther) {
  const auto t = Tolerances::parse(R"(
    [stages.o]
    rms_fraction = { value = 0.5, reason = "a trial" }
    [stages.q]
    rule = "exact"
  )",
                                   "mine.toml", family());
  const Tolerances defaults = Tolerances::defaults(family());
  EXPECT_EQ(t.at(stage("o")).rms_fraction, 0.5);
  EXPECT_EQ(t.at(stage("o")).reasons.at("rms_fraction"), "a trial");
  EXPECT_EQ(t.at(stage("o")).units, 1);
  EXPECT_EQ(t.at(stage("q")).kind, ToleranceKind::exact);
  EXPECT_EQ(t.at(stage("og")).text(), defaults.at(stage("og")).text());
}

TEST(Tolerance, AnOverrideMayBringItsOwnRule) {
  const auto t = Tolerances::parse(R"(
    [rules.loose]
    kind = "f32"
    absolute = { value = 1, reason = "r" }
    relative = { value = 0, reason = "r" }
    rms_fraction = { value = 0, reason = "r" }
    row_rel_l2 = { value = 0.25, reason = "r" }
    [stages.lse]
    rule = "loose"
  )",
                                   "mine.toml", family());
  EXPECT_EQ(t.at(stage("lse")).absolute, 1);
  EXPECT_EQ(t.at(stage("lse")).row_rel_l2, 0.25);
}

struct Refusal {
  const char* what;
  const char* toml;
  const char* object;
  const char* expected;
  const char* found;
};

std::ostream& operator<<(std::ostream& out, const Refusal& r) { return out << r.what; }

class ToleranceRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(ToleranceRefuses, NamingFileKeyExpectedAndFound) {
  try {
    static_cast<void>(Tolerances::parse(GetParam().toml, "mine.toml", family()));
    FAIL() << "was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_EQ(e.details().file, "mine.toml");
    EXPECT_EQ(e.details().object, GetParam().object);
    EXPECT_THAT(e.details().expected, HasSubstr(GetParam().expected));
    EXPECT_THAT(e.details().found, HasSubstr(GetParam().found));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, ToleranceRefuses,
    ::testing::Values(
        Refusal{"unknown stage", "[stages.out2]\nrule = \"bf16\"", "stages.out2", "index_score", "out2"},
        Refusal{"unknown rule", "[stages.out]\nrule = \"loose\"", "stages.out.rule", "bf16", "loose"},
        Refusal{"unknown top key", "[stage.out]\nrule = \"bf16\"", "stage", "rules, stages", "stage"},
        Refusal{"unknown number", "[stages.out]\nulps = { value = 1, reason = \"r\" }", "stages.out.ulps", "units",
                "ulps"},
        Refusal{"number of another kind", "[stages.out]\nsteps = { value = 1, reason = \"r\" }", "stages.out.steps",
                "rms_fraction", "steps"},
        Refusal{"bare number", "[stages.out]\nunits = 2", "stages.out.units", "reason", "integer"},
        Refusal{"no reason", "[stages.out]\nunits = { value = 2 }", "stages.out.units.reason", "a string", "nothing"},
        Refusal{"blank reason", "[stages.out]\nunits = { value = 2, reason = \" \" }", "stages.out.units.reason",
                "says why", "\"\""},
        Refusal{"reason no text", "[stages.out]\nunits = { value = 2, reason = 3 }", "stages.out.units.reason",
                "a string", "integer"},
        Refusal{"no value", "[stages.out]\nunits = { reason = \"r\" }", "stages.out.units.value", "a number",
                "nothing"},
        Refusal{"negative", "[stages.out]\nunits = { value = -1, reason = \"r\" }", "stages.out.units.value",
                "finite number from 0", "-1"},
        Refusal{"infinite", "[stages.out]\nunits = { value = inf, reason = \"r\" }", "stages.out.units.value",
                "finite number from 0", "inf"},
        Refusal{"nan", "[stages.out]\nrms_fraction = { value = nan, reason = \"r\" }", "stages.out.rms_fraction.value",
                "finite number from 0", "nan"},
        Refusal{"more than all", "[stages.out]\nmax_different_fraction = { value = 1.5, reason = \"r\" }",
                "stages.out.max_different_fraction.value", "from 0 to 1", "1.5"},
        Refusal{"half a count", "[stages.out]\nalways_allowed = { value = 1.5, reason = \"r\" }",
                "stages.out.always_allowed.value", "whole number", "1.5"},
        Refusal{"unknown key beside a value", "[stages.out]\nunits = { value = 1, reason = \"r\", why = 1 }",
                "stages.out.units.why", "value, reason", "why"},
        Refusal{"unknown kind", "[rules.mine]\nkind = \"float16\"", "rules.mine.kind", "quantised", "float16"},
        Refusal{"exact without reason", "[rules.mine]\nkind = \"exact\"", "rules.mine.reason", "a string", "nothing"},
        Refusal{"incomplete rule", "[rules.mine]\nkind = \"bf16\"", "rules.mine.units", "value, reason", "nothing"},
        Refusal{"loose positions", "[stages.idx]\nrule = \"bf16\"", "stages.idx", "exact", "bf16"},
        Refusal{"grid steps without a grid", "[stages.out]\nrule = \"fp8\"", "stages.out", "bf16", "quantised"},
        Refusal{"bf16 units of a float32", "[stages.lse]\nrule = \"bf16\"", "stages.lse", "f32", "bf16"},
        Refusal{"stage no table", "stages.out = 3", "stages.out", "a table", "integer"},
        Refusal{"not TOML", "[stages.out", "line 1, column 12", "a tolerance file", ""}));

TEST(Tolerance, AFileIsRead) {
  const std::string path = ::testing::TempDir() + "attndiff_tolerance_test.toml";
  std::ofstream(path) << "[stages.out]\nunits = { value = 3, reason = \"r\" }\n";
  EXPECT_EQ(Tolerances::from_file(path, family()).at(stage("out")).units, 3);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_EQ(Tolerances::from_file(path, family()).at(stage("out")).units, 1) << "an empty file changes nothing";
  ASSERT_EQ(std::remove(path.c_str()), 0);
}

TEST(Tolerance, AFileThatIsNotThereIsNamed) {
  for (const std::string& path : {::testing::TempDir() + "no_such_file.toml", ::testing::TempDir()}) {
    try {
      static_cast<void>(Tolerances::from_file(path, family()));
      FAIL() << "was read";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      EXPECT_EQ(e.details().file, path);
    }
  }
}

}  // namespace
}  // namespace attndiff
