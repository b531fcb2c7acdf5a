#include "reports/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/html_data.h"
#include "reports/sample_report.h"

namespace attndiff {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Html, IsOneFileWithoutOutsideReferences) {
  const std::string text = html_text(test::run_of({test::fixture("a.h5", {test::detailed("out", 1)})}));
  EXPECT_THAT(text, Not(HasSubstr("http://")));
  EXPECT_THAT(text, Not(HasSubstr("https://")));
  EXPECT_THAT(text, Not(HasSubstr("{{")));
  EXPECT_THAT(text, HasSubstr("<h1 id=\"outcome\">FAILED</h1>"));
}

TEST(Html, APathCannotEndTheDataOrFillAPlace) {
  const std::string path = "</script><script>alert(1)</script>{{SCRIPT}}.h5";
  const std::string text = html_text(test::run_of({test::fixture(path, {test::failing("out", 1)})}));
  EXPECT_THAT(text, Not(HasSubstr("alert(1)</script>")));
  const std::string begin = "id=\"report\">";
  const std::size_t at = text.find(begin) + begin.size();
  const auto data = ordered_json::parse(text.substr(at, text.find("</script>", at) - at));
  EXPECT_EQ(data["fixtures"][0]["path"], path);
}

TEST(HtmlData, StagesKeepTheOrderOfTheirLayers) {
  ComparisonRecord other = test::passing("index_q", 0);
  other.layer_id = 3;
  ComparisonRecord q = test::passing("q", 0);
  q.layer_id = 3;
  const ordered_json j =
      html_data(test::run_of({test::fixture("a.h5", {test::passing("q", 0), test::passing("out", 0), q, other})}));
  EXPECT_EQ(j["stages"], ordered_json({"q", "index_q", "out"}));
  EXPECT_EQ(j["layers"].size(), 2U);
}

TEST(HtmlData, ReproCommandsShareAPattern) {
  ComparisonRecord a = test::passing("q", 0);
  a.repro = "attndiff replay --mode free --layers 2 --steps 0 --stages q a.h5";
  ComparisonRecord b = test::failing("out", 1);
  b.repro = "attndiff replay --mode free --layers 2 --steps 1 --stages out a.h5";
  ComparisonRecord odd = test::failing("o", 1);
  odd.repro = "attndiff replay --repeat 2 --mode free --layers 2 --steps 1 --stages o a.h5";
  const ordered_json j = html_data(test::run_of({test::fixture("a.h5", {a, b, odd})}));
  EXPECT_EQ(j["texts"][j["runs"][0]["repro"].get<std::size_t>()],
            "attndiff replay --mode free --layers {layer} --steps {step} --stages {stage} a.h5");
  EXPECT_FALSE(j["more"]["1"].contains("repro"));
  EXPECT_EQ(j["more"]["2"]["repro"], odd.repro);
}

TEST(HtmlData, OnlyWhatIsNoPlainPassHasMore) {
  const ordered_json j =
      html_data(test::run_of({test::fixture("a.h5", {test::passing("q", 0), test::detailed("o", 1)})}));
  EXPECT_EQ(j["cells"]["run"].size(), 2U);
  EXPECT_EQ(j["cells"]["ratio"], ordered_json({0, "inf"}));
  EXPECT_EQ(j["cells"]["abs"], ordered_json({0, "inf"}));
  EXPECT_TRUE(j["more"]["1"].contains("detail"));
  EXPECT_EQ(j["more"]["1"]["worst"]["candidate"], "nan");
}

}  // namespace
}  // namespace attndiff
