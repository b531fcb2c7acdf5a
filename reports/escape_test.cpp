#include "reports/escape.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace attndiff {
namespace {

TEST(Escape, Utf8IsLeftAndOtherBytesAreReplaced) {
  EXPECT_EQ(valid_utf8("a\xC3\xA4\"\\\n"), "a\xC3\xA4\"\\\n");
  EXPECT_EQ(valid_utf8("a\xff.h5"), "a\xEF\xBF\xBD.h5");
}

TEST(Escape, Xml) {
  EXPECT_EQ(xml_escaped("<a b=\"c\" d='e'>&\n\t"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;&#10;&#9;");
  EXPECT_EQ(xml_escaped(std::string("\x01", 1)), "\xEF\xBF\xBD") << "no XML 1.0 document can hold it";
}

TEST(Escape, AScriptElementIsNotEndedAndTheJsonIsTheSame) {
  const std::string path = "</script><!--<script>&amp;.h5";
  const std::string safe = script_safe(nlohmann::json(path).dump());
  EXPECT_EQ(safe.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(safe).get<std::string>(), path);
}

TEST(Escape, Markdown) {
  EXPECT_EQ(markdown_escaped("a_b*c|d <i>@me\n#1"), "a\\_b\\*c&#124;d &lt;i&gt;&#64;me \\#1");
  EXPECT_EQ(markdown_code("a|b"), "`a\\|b`");
  EXPECT_EQ(markdown_code("a`b"), "`` a`b ``");
  EXPECT_EQ(markdown_block("x\n```"), "````\nx\n```\n````\n");
}

TEST(Escape, WorkflowCommands) {
  EXPECT_EQ(workflow_message("100 %: a,b\r\nc"), "100 %25: a,b%0D%0Ac");
  EXPECT_EQ(workflow_property("100 %: a,b\n"), "100 %25%3A a%2Cb%0A");
}

}  // namespace
}  // namespace attndiff
