// Reports from the outside: what replay and compare write, print and return.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "harness/cli/run_program.h"
#include "harness/fixture/testing.h"

namespace attndiff {
namespace {

namespace fs = std::filesystem;
using cli_testing::ProgramRun;
using cli_testing::run_attndiff;
using fixture_testing::FixtureEditor;
using fixture_testing::TemporaryFolder;
using nlohmann::json;
using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

std::string bundled(const std::string& name) { return std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures/" + name; }

/// A copy of a bundled fixture with half a head of one query's attention output negated.
std::string broken_fixture(const TemporaryFolder& folder, const std::string& name = "broken.h5") {
  const std::string path = folder.copy(bundled("tiny-ties.h5"), name);
  FixtureEditor file(path);
  const std::string object = "/steps/0002/layers/0003/expected/o";
  const auto values = file.values(object);
  for (std::size_t column = 16; column < 32; ++column) {
    file.set(object, static_cast<std::int64_t>(32 + column), -values[32 + column]);
  }
  return path;
}

ProgramRun replay(const std::string& arguments) { return run_attndiff("replay --candidate recorded " + arguments); }

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string last_line(const std::string& text) {
  const std::string body = text.substr(0, text.find_last_not_of('\n') + 1);
  return body.substr(body.rfind('\n') + 1);
}

/// Sets a variable of the environment while it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

/// A bare chroot has no /dev/pts.
bool terminals_exist() {
  int terminal = -1;
  int end = -1;
  if (::openpty(&terminal, &end, nullptr, nullptr, nullptr) != 0) {
    return false;
  }
  ::close(end);
  ::close(terminal);
  return true;
}

/// Runs the program in a terminal of its own; what it prints there.
std::string in_terminal(const std::vector<std::string>& arguments) {
  int terminal = -1;
  const ::pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) {
    throw std::system_error(errno, std::generic_category(), "a pseudo-terminal");
  }
  if (child == 0) {
    std::vector<char*> words{const_cast<char*>(ATTNDIFF_BINARY)};
    for (const std::string& argument : arguments) {
      words.push_back(const_cast<char*>(argument.c_str()));
    }
    words.push_back(nullptr);
    ::execv(ATTNDIFF_BINARY, words.data());
    ::_exit(127);
  }
  std::string output;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(terminal, buffer.data(), buffer.size())) > 0;) {
    output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(terminal);
  ::waitpid(child, nullptr, 0);
  return output;
}

TEST(Outputs, TheLastLineMakesJustTheFirstFailureAgain) {
  const TemporaryFolder folder;
  const std::string path = broken_fixture(folder, "broken 'odd' $name.h5");
  const std::string quoted = "\"" + folder.file("broken 'odd' \\$name.h5") + "\"";
  const ProgramRun run = replay("--quiet " + quoted);
  EXPECT_EQ(run.exit_code, 1) << run.output;
  const std::string command = last_line(run.output);
  const std::string program = "attndiff ";
  ASSERT_EQ(command.substr(0, program.size()), program) << run.output;
  const ProgramRun again = run_attndiff(command.substr(program.size()) + " --json " + folder.file("again.json"));
  EXPECT_EQ(again.exit_code, 1) << again.output;
  const json report = json::parse(contents(folder.file("again.json")));
  const json& comparisons = report["fixtures"][0]["comparisons"];
  ASSERT_EQ(comparisons.size(), 1U) << "just that comparison";
  EXPECT_EQ(comparisons[0]["stage"], "o");
  EXPECT_EQ(comparisons[0]["layer_id"], 3);
  EXPECT_EQ(comparisons[0]["step"], 2);
  EXPECT_EQ(comparisons[0]["verdict"], "fail");
  EXPECT_EQ(last_line(again.output), command) << "and it is its own repro";
}

TEST(Outputs, DetailsLeadToTheElement) {
  const TemporaryFolder folder;
  const ProgramRun run = replay("--json " + folder.file("r.json") + " " + broken_fixture(folder));
  EXPECT_EQ(run.exit_code, 1);
  const json report = json::parse(contents(folder.file("r.json")));
  std::size_t details = 0;
  for (const json& c : report["fixtures"][0]["comparisons"]) {
    details += c.contains("detail") ? 1 : 0;
    EXPECT_TRUE(c["verdict"] != "fail" || c.contains("detail"));
    if (c["verdict"] != "fail") {
      continue;
    }
    const json& d = c["detail"];
    EXPECT_EQ(d["axes"], json({"token", "head", "column"}));
    EXPECT_EQ(d["worst"].size(), 10U);
    EXPECT_EQ(d["worst"][0], c["worst"]);
    const std::string head_1 = d["maps"].back()["rows"][1];
    EXPECT_EQ(std::count_if(head_1.begin(), head_1.end(), [](char x) { return x >= 'A' && x <= 'Z'; }), 16);
  }
  EXPECT_GT(details, 1U);
  EXPECT_LE(details, 200U);
  std::vector<std::string> timed;
  for (const json& timing : report["fixtures"][0]["timings"]) {
    timed.push_back(timing["mode"]);
    EXPECT_GT(timing["seconds"][0], 0) << timing;
  }
  EXPECT_EQ(timed, (std::vector<std::string>{"reference", "coverage", "free", "free judging"}));
  EXPECT_TRUE(report["backends"].contains("cpu"));
}

TEST(Outputs, EveryFormatIsWritten) {
  const TemporaryFolder folder;
  const ProgramRun run =
      replay("--json " + folder.file("r.json") + " --junit " + folder.file("r.xml") + " --html " +
             folder.file("r.html") + " --markdown " + folder.file("r.md") + " " + broken_fixture(folder));
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_THAT(contents(folder.file("r.json")), HasSubstr("\"attndiff-report/1\""));
  EXPECT_THAT(contents(folder.file("r.xml")), HasSubstr("<failure type=\"fail\""));
  EXPECT_THAT(contents(folder.file("r.html")), HasSubstr("<h1 id=\"outcome\">FAILED</h1>"));
  EXPECT_THAT(contents(folder.file("r.md")), HasSubstr("### attndiff: FAILED"));
}

TEST(Outputs, AFullDiskExitsWith5AndTheTableIsPrinted) {
  for (const char* option : {"--json", "--junit", "--html", "--markdown"}) {
    const ProgramRun run =
        replay("--layers 0 --steps 0 " + std::string(option) + " /dev/full " + bundled("tiny-ties.h5"));
    EXPECT_EQ(run.exit_code, 5) << option << run.output;
    EXPECT_THAT(run.output, HasSubstr("internal: /dev/full: cannot be written (found No space left on device)"));
    EXPECT_THAT(run.output, HasSubstr("NOT PASSED"));
  }
}

TEST(Outputs, WrongUsageExitsWith2) {
  const TemporaryFolder folder;
  EXPECT_EQ(replay("--quiet --verbose " + bundled("tiny-ties.h5")).exit_code, 2);
  const ProgramRun same =
      replay("--json " + folder.file("r") + " --html " + folder.file("r") + " " + bundled("tiny-ties.h5"));
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_THAT(same.output, HasSubstr("--html: two reports cannot have the same file"));
  EXPECT_FALSE(fs::exists(folder.file("r")));
}

TEST(Outputs, QuietLeavesOutWhatPassed) {
  const ProgramRun run = replay("--quiet --layers 3 --steps 0 " + bundled("tiny-ties.h5"));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, ::testing::StartsWith("1 fixtures, "));
}

TEST(Outputs, AnnotationsOnlyInAWorkflow) {
  const TemporaryFolder folder;
  const std::string path = broken_fixture(folder);
  EXPECT_THAT(replay("--quiet " + path).output, Not(HasSubstr("::error")));
  const Environment workflow("GITHUB_ACTIONS", "true");
  const ProgramRun run = replay("--quiet " + path);
  EXPECT_THAT(run.output, ::testing::StartsWith("::error title=attndiff%3A o of layer 3%2C step 2%3A fail::"));
  EXPECT_EQ(last_line(run.output).substr(0, 16), "attndiff replay ");
}

TEST(Outputs, ColourOnATerminalUnlessNoColor) {
  if (!terminals_exist()) {
    GTEST_SKIP() << "no pseudo-terminal can be had here";
  }
  const TemporaryFolder folder;
  const std::string path = broken_fixture(folder);
  const std::vector<std::string> arguments{"replay", "--candidate", "recorded", "--quiet", path};
  const Environment terminal("TERM", "xterm");
  EXPECT_THAT(in_terminal(arguments), HasSubstr("\x1b[31mFAILED\x1b[0m"));
  EXPECT_THAT(replay("--quiet " + path).output, Not(HasSubstr("\x1b"))) << "a pipe is no terminal";
  const Environment plain("NO_COLOR", "1");
  EXPECT_THAT(in_terminal(arguments), Not(HasSubstr("\x1b")));
}

TEST(Outputs, ALongRunShowsAProgressBarOnATerminal) {
  if (!terminals_exist()) {
    GTEST_SKIP() << "no pseudo-terminal can be had here";
  }
  const Environment terminal("TERM", "xterm");
  // A bar shows after a second; sanitizers make a run ten times as long.
#ifdef __SANITIZE_ADDRESS__
  const std::string repetitions = "3";
#else
  const std::string repetitions = "24";
#endif
  std::vector<std::string> arguments{"replay", "--candidate", "cpu",       "--mode",
                                     "free",   "--repeat",    repetitions, bundled("mid-candidates.h5")};
  const std::string output = in_terminal(arguments);
  EXPECT_THAT(output, HasSubstr(" %  fixture 1 of 1, about "));
  EXPECT_THAT(output, HasSubstr("\r\x1b[K")) << "it is wiped before the table";
  arguments.emplace_back("--quiet");
  EXPECT_THAT(in_terminal(arguments), Not(HasSubstr("fixture 1 of 1")));
}

TEST(Outputs, AKilledRunLeavesNoPartOfAReport) {
  const TemporaryFolder folder;
  const std::string json_path = folder.file("r.json");
  const std::string html_path = folder.file("r.html");
  const std::string fixture = bundled("tiny-ties.h5");
  const auto start = [&] {
    static_cast<void>(std::fflush(nullptr));  // else the child prints it again
    const ::pid_t child = ::fork();
    if (child == 0) {
      if (std::freopen("/dev/null", "w", stdout) != nullptr) {
        ::execl(ATTNDIFF_BINARY, ATTNDIFF_BINARY, "replay", "--candidate", "recorded", "--json", json_path.c_str(),
                "--html", html_path.c_str(), "--steps", "0,1", fixture.c_str(), nullptr);
      }
      ::_exit(127);
    }
    return child;
  };
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  ASSERT_EQ(::waitpid(start(), &status, 0) > 0, true);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const auto whole_run = std::chrono::steady_clock::now() - begin;
  const std::size_t comparisons = json::parse(contents(json_path))["fixtures"][0]["comparisons"].size();
  ASSERT_GT(comparisons, 0U);

  std::mt19937 random(20);  // the same moments in every run
  std::uniform_real_distribution<double> part(0.0, 1.1);
  for (int kill = 0; kill < 20; ++kill) {
    fs::remove(json_path);
    std::ofstream(html_path) << "old";
    const ::pid_t child = start();
    std::this_thread::sleep_for(std::chrono::duration_cast<std::chrono::microseconds>(whole_run * part(random)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (fs::exists(json_path)) {
      EXPECT_EQ(json::parse(contents(json_path))["fixtures"][0]["comparisons"].size(), comparisons);
    }
    const std::string html = contents(html_path);
    EXPECT_TRUE(html == "old" || html.ends_with("</html>\n")) << "kill " << kill << ": " << html.size();
  }
}

/// Two reports of the same fixture, the second of a spoilt copy under the same name.
class Compare : public ::testing::Test {
 protected:
  void SetUp() override {
    write(folder_.copy(bundled("tiny-ties.h5"), "a.h5"), "before.json");
    broken_fixture(folder_, "a.h5");
    write(folder_.file("a.h5"), "after.json");
  }

  void write(const std::string& fixture, const std::string& name) const {
    static_cast<void>(replay("--layers 3 --json " + folder_.file(name) + " " + fixture));
  }
  [[nodiscard]] ProgramRun compare(const std::string& before, const std::string& after,
                                   const std::string& more = "") const {
    return run_attndiff("compare " + folder_.file(before) + " " + folder_.file(after) + " " + more);
  }

  TemporaryFolder folder_;
};

TEST_F(Compare, ANewFailureIsARegressionAndItsMendingIsNone) {
  const ProgramRun worse =
      compare("before.json", "after.json", "--html " + folder_.file("c.html") + " --markdown " + folder_.file("c.md"));
  EXPECT_EQ(worse.exit_code, 1) << worse.output;
  EXPECT_THAT(worse.output, HasSubstr("1 newly failing, 0 no longer compared"));
  EXPECT_THAT(last_line(worse.output), HasSubstr("--layers 3 --steps 2 --stages o "));
  EXPECT_THAT(contents(folder_.file("c.html")), HasSubstr("<h1>REGRESSED</h1>"));
  EXPECT_THAT(contents(folder_.file("c.md")), HasSubstr("### attndiff compare: REGRESSED"));
  const ProgramRun better = compare("after.json", "before.json");
  EXPECT_EQ(better.exit_code, 0) << better.output;
  EXPECT_THAT(better.output, HasSubstr("1 mended"));
  EXPECT_EQ(compare("before.json", "before.json").exit_code, 0);
}

TEST_F(Compare, WhatVanishedIsARegressionAndNothingInCommonIs4) {
  static_cast<void>(replay("--layers 3 --steps 0 --json " + folder_.file("part.json") + " " + folder_.file("a.h5")));
  EXPECT_EQ(compare("before.json", "part.json").exit_code, 1);
  write(bundled("tiny-short-prefill.h5"), "other.json");
  const ProgramRun other = compare("before.json", "other.json");
  EXPECT_EQ(other.exit_code, 4) << other.output;
  EXPECT_THAT(other.output, HasSubstr("NOTHING IN COMMON"));
}

TEST_F(Compare, WhatIsNoReportExitsWith2) {
  std::ofstream(folder_.file("torn.json")) << contents(folder_.file("before.json")).substr(0, 1000);
  json newer = json::parse(contents(folder_.file("before.json")));
  newer["schema"] = "attndiff-report/2";
  std::ofstream(folder_.file("newer.json")) << newer;
  for (const char* name : {"torn.json", "newer.json", "none.json"}) {
    const ProgramRun run = compare("before.json", name);
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_THAT(run.output, HasSubstr(name));
  }
  EXPECT_EQ(compare("before.json", "after.json", "--headroom 0.5").exit_code, 2);
  EXPECT_EQ(compare("before.json", "after.json", "--html /dev/full").exit_code, 5);
}

}  // namespace
}  // namespace attndiff
