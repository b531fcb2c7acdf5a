#include "reference/contract/error.h"

#include <gtest/gtest.h>

namespace attndiff {
namespace {

ErrorDetails details(const char* file, const char* object, const char* expected, const char* found) {
  return {.file = file, .object = object, .problem = "wrong shape", .expected = expected, .found = found};
}

std::string text(const ErrorDetails& d) { return Error(ErrorKind::input, d).what(); }

TEST(Error, TextNamesFileObjectProblemExpectedFound) {
  EXPECT_EQ(text(details("a.h5", "/config", "[2]", "[3]")), "a.h5: /config: wrong shape (expected [2], found [3])");
}

TEST(Error, TextLeavesEmptyPartsOut) {
  EXPECT_EQ(text(details("", "", "", "")), "wrong shape");
  EXPECT_EQ(text(details("a.h5", "", "", "")), "a.h5: wrong shape");
  EXPECT_EQ(text(details("", "/config", "", "[3]")), "/config: wrong shape (found [3])");
  EXPECT_EQ(text(details("", "/config", "[2]", "")), "/config: wrong shape (expected [2])");
}

TEST(Error, KeepsKindAndParts) {
  const Error error(ErrorKind::refused, details("f", "o", "e", "x"));
  EXPECT_EQ(error.kind(), ErrorKind::refused);
  EXPECT_EQ(error.details().object, "o");
  EXPECT_EQ(error.details().problem, "wrong shape");
  const Error plain(ErrorKind::usage, "no fixture");
  EXPECT_EQ(plain.kind(), ErrorKind::usage);
  EXPECT_STREQ(plain.what(), "no fixture");
}

TEST(Error, InFileAddsTheFileOnceAndKeepsTheRest) {
  const Error inner(ErrorKind::refused, details("", "layer 3", "1", "2"));
  const Error outer = inner.in_file("a.h5");
  EXPECT_EQ(outer.kind(), ErrorKind::refused);
  EXPECT_STREQ(outer.what(), "a.h5: layer 3: wrong shape (expected 1, found 2)");
  EXPECT_EQ(outer.in_file("b.h5").details().file, "a.h5");
}

}  // namespace
}  // namespace attndiff
