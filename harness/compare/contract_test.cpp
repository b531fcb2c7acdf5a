#include "harness/compare/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attndiff {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Contract, EveryCaseGetsItsVerdict) {
  const auto cases = comparator_contract();
  ASSERT_GE(cases.size(), 30U);
  for (const ContractCase& c : cases) {
    const Comparison got = c.run();
    EXPECT_EQ(name_of(got.verdict), name_of(c.expected)) << c.name << ": " << got.reason;
    EXPECT_EQ(got.counted, c.counted) << c.name;
    EXPECT_FALSE(got.reason.empty()) << c.name;
  }
}

TEST(Contract, TextDefinesEveryVerdictAndShowsEveryCase) {
  const std::string text = contract_text();
  for (const VerdictInfo& v : verdicts()) {
    EXPECT_THAT(text, HasSubstr(std::string(v.definition)));
  }
  for (const ContractCase& c : comparator_contract()) {
    EXPECT_THAT(text, HasSubstr(std::string(c.name)));
  }
  EXPECT_THAT(text, Not(HasSubstr("BROKEN")));
}

}  // namespace
}  // namespace attndiff
