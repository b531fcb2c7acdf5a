#include "reference/contract/printable.h"

#include <gtest/gtest.h>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

TEST(Printable, PlainTextStays) {
  for (const char* text : {"", "a b/c.h5", "größe \\n 数", "'\"$"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ControlCharactersAreSpelt) {
  EXPECT_EQ(printable("a\nb\tc\r\x1b[31m\x7f"), "a\\nb\\tc\\r\\x1b[31m\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\xc2\xa0\xc2"),
            "\\xc2\\x9b31m\xc2\xa0\xc2");
}

TEST(Printable, MessagesOfErrorsAreOneLine) {
  const Error e(ErrorKind::input, {.file = "a\nb.h5", .object = {}, .problem = "bad", .expected = {}, .found = "\x1b"});
  EXPECT_STREQ(e.what(), "a\\nb.h5: bad (found \\x1b)");
  EXPECT_EQ(e.details().file, "a\nb.h5");
}

}  // namespace
}  // namespace attndiff
