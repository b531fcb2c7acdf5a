#include "reference/contract/families.h"

#include <gtest/gtest.h>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

TEST(Families, AreFoundByName) {
  const ModelFamily* family = find_family("deepseek-v41");
  ASSERT_NE(family, nullptr);
  EXPECT_EQ(family->name, "deepseek-v41");
  EXPECT_EQ(&family_named("deepseek-v41"), family);
}

TEST(Families, AConfigurationsDefaultIsOneOfThem) { EXPECT_NE(find_family(ModelConfig{}.family), nullptr); }

TEST(Families, AnUnknownNameIsAnInputErrorThatNamesBoth) {
  EXPECT_EQ(find_family("deepseek-v4"), nullptr);
  EXPECT_EQ(find_family(""), nullptr);
  try {
    (void)family_named("llama");
    FAIL() << "an unknown family was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.details().expected, "deepseek-v41");
    EXPECT_EQ(error.details().found, "llama");
  }
}

}  // namespace
}  // namespace attndiff
