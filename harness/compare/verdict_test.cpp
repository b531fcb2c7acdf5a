#include "harness/compare/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace attndiff {
namespace {

TEST(Verdict, TableIsInTheOrderOfTheEnumeration) {
  ASSERT_EQ(verdicts().size(), kVerdictCount);
  for (std::size_t i = 0; i < kVerdictCount; ++i) {
    EXPECT_EQ(static_cast<std::size_t>(verdicts()[i].verdict), i);
    EXPECT_EQ(info_of(verdicts()[i].verdict).name, verdicts()[i].name);
    EXPECT_EQ(verdict_named(verdicts()[i].name), verdicts()[i].verdict);
  }
  EXPECT_EQ(verdict_named("PASS"), std::nullopt);
}

TEST(Verdict, WhatFailsARun) {
  std::set<std::string> failing;
  for (const VerdictInfo& v : verdicts()) {
    if (fails_run(v.verdict)) {
      failing.emplace(v.name);
    }
  }
  EXPECT_EQ(failing, (std::set<std::string>{"fail", "missing", "degenerate", "uncertified", "crashed"}));
  EXPECT_EQ(info_of(Verdict::error).effect, VerdictEffect::bad_input);
}

TEST(Verdict, OnlyAgreementVerifies) {
  for (const VerdictInfo& v : verdicts()) {
    const bool agrees = v.name == "pass" || v.name == "tie" || v.name == "explained";
    EXPECT_EQ(v.verified, agrees) << v.name;
  }
}

TEST(Verdict, EachHasASentence) {
  for (const VerdictInfo& v : verdicts()) {
    EXPECT_GT(v.definition.size(), 30U) << v.name;
    EXPECT_EQ(v.definition.back(), '.') << v.name;
  }
}

}  // namespace
}  // namespace attndiff
