#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "reports/atomic_file.h"
#include "reports/html.h"
#include "reports/json.h"
#include "reports/sample_report.h"

namespace attndiff {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

RunReport big_report(const std::string& stage) {
  std::vector<ComparisonRecord> many;
  for (std::size_t step = 0; step < 4000; ++step) {
    many.push_back(step % 10 == 0 ? test::detailed(stage, step) : test::passing(stage, step));
  }
  return test::run_of({test::fixture("a.h5", std::move(many))});
}

/// Writes both reports in turn, as JSON and as HTML, until it is killed.
[[noreturn]] void write_forever(const std::string& json, const std::string& html, const RunReport& a,
                                const RunReport& b) {
  for (bool odd = true;; odd = !odd) {
    write_json(odd ? b : a, json);
    write_atomically(html, html_text(odd ? b : a));
  }
}

TEST(Kill, AReportIsAbsentOrOldOrWhole) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("attndiff_kill_test" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string json = (folder / "report.json").string();
  const std::string html = (folder / "report.html").string();
  const RunReport a = big_report("out");
  const RunReport b = big_report("latent");
  const std::string whole_json[] = {json_text(a), json_text(b)};
  const std::string whole_html[] = {html_text(a), html_text(b)};
  ASSERT_GT(whole_json[0].size(), std::size_t{2} << 20U);

  std::mt19937 random(20);  // the same moments in every run
  std::uniform_int_distribution<int> microseconds(0, 400'000);
  for (int kill = 0; kill < 20; ++kill) {
    if (kill % 4 == 0) {  // from time to time there is no old report
      fs::remove(json);
      fs::remove(html);
    }
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      write_forever(json, html, a, b);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    if (fs::exists(json)) {
      const std::string found = contents(json);
      ASSERT_TRUE(found == whole_json[0] || found == whole_json[1]) << "kill " << kill << ": " << found.size();
    }
    if (fs::exists(html)) {
      const std::string found = contents(html);
      ASSERT_TRUE(found == whole_html[0] || found == whole_html[1]) << "kill " << kill << ": " << found.size();
    }
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace attndiff
