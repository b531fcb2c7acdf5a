// The gate from the outside: what passes, what fails and where the table says so, and the exit codes others rely on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/cli/run_program.h"
#include "harness/fixture/testing.h"

namespace attndiff {
namespace {

using cli_testing::ProgramRun;
using cli_testing::run_attndiff;
using fixture_testing::FixtureEditor;
using fixture_testing::TemporaryFolder;
using ::testing::HasSubstr;

constexpr const char* kBundled[] = {"mid-candidates.h5", "tiny-candidates-odd.h5", "tiny-prefill-decode.h5",
                                    "tiny-short-prefill.h5", "tiny-ties.h5"};

std::string bundled(const std::string& name) { return std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures/" + name; }

ProgramRun replay(const std::string& arguments) {
  return run_attndiff("replay --reference cpu --candidate recorded " + arguments);
}

TEST(Replay, BundledFixturesPassWithEveryIndexRowExact) {
  const TemporaryFolder folder;
  const std::string json = folder.file("report.json");
  const ProgramRun run = replay("--json " + json + " " + std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const auto report = nlohmann::json::parse(std::ifstream(json));
  std::int64_t index_comparisons = 0;
  for (const auto& fixture : report.at("fixtures")) {
    for (const auto& comparison : fixture.at("comparisons")) {
      EXPECT_EQ(comparison.at("verdict"), "pass");
      if (comparison.at("stage") == "idx") {
        EXPECT_EQ(comparison.at("mismatches"), 0);
        ++index_comparisons;
      }
    }
  }
  // One comparison of idx for each layer call; their rows add up to 1,593.
  EXPECT_EQ(index_comparisons, 30 + 217 + 35 + 91 + 63);
}

/// One way of spoiling a recorded tensor, and what the gate must say of it.
struct Spoiling {
  const char* name;
  const char* object;
  const char* stage;
  const char* index;  ///< of the element or row, as the table prints it; empty where the whole tensor is wrong
  void (*spoil)(FixtureEditor&, const std::string&);
};

void move_beyond_tolerance(FixtureEditor& file, const std::string& object) {
  const auto values = file.values(object);
  double sum = 0;
  for (const double v : values) {
    sum += v * v;
  }
  const double rms = std::sqrt(sum / static_cast<double>(values.size()));
  file.set(object, 37, values[37] + rms);
}

template <int Element>
void set_nan(FixtureEditor& file, const std::string& object) {
  file.set(object, Element, std::numeric_limits<double>::quiet_NaN());
}

void set_infinity(FixtureEditor& file, const std::string& object) {
  file.set(object, 5, std::numeric_limits<double>::infinity());
}

void change_index(FixtureEditor& file, const std::string& object) {
  file.change(object, [](std::size_t i, double v) { return i == 3 ? v + 1 : v; });
}

template <int Width, int Row>
void zero_row(FixtureEditor& file, const std::string& object) {
  file.change(object, [](std::size_t i, double v) { return i / Width == Row ? 0.0 : v; });
}

void negate(FixtureEditor& file, const std::string& object) {
  file.change(object, [](std::size_t, double v) { return -v; });
}

void zero(FixtureEditor& file, const std::string& object) {
  file.change(object, [](std::size_t, double) { return 0.0; });
}

void flip_mask(FixtureEditor& file, const std::string& object) {
  file.change(object, [](std::size_t i, double v) { return i == 7 ? 1.0 - v : v; });
}

constexpr const char* kStep0Layer1 = "/steps/0000/layers/0001/expected/";

const Spoiling kSpoilings[] = {
    {"ElementMoved", "out", "out", "[0, 37]", move_beyond_tolerance},
    {"ElementMovedQ", "q", "q", "[0, 1, 5]", move_beyond_tolerance},
    {"ElementMovedLatent", "stages/latent", "latent", "[1, 5]", move_beyond_tolerance},
    {"ElementMovedRows", "stages/rows", "rows", "[1, 5]", move_beyond_tolerance},
    {"ElementMovedIndexQ", "stages/index_q", "index_q", "[0, 1, 5]", move_beyond_tolerance},
    {"IndexChanged", "idx", "idx", "[0, 3]", change_index},
    {"NaN", "o", "o", "[0, 2, 1]", set_nan<65>},
    {"NaNInTheLastElement", "out", "out", "[11, 63]", set_nan<12 * 64 - 1>},
    {"Infinity", "stages/qr", "qr", "[0, 5]", set_infinity},
    {"RowZeroed", "out", "out", "[7", zero_row<64, 7>},
    {"RowZeroedKv", "stages/kv", "kv", "[4", zero_row<32, 4>},
    {"HeadZeroed", "o", "o", "[2, 3", zero_row<32, 11>},
    {"Negated", "out", "out", "", negate},
    {"NegatedScores", "stages/index_score", "index_score", "", negate},
    {"Zeroed", "o", "o", "", zero},
    {"ZeroedIdx", "idx", "idx", "", zero},
};

class SpoiltResult : public ::testing::TestWithParam<Spoiling> {};

TEST_P(SpoiltResult, FailsWhereItIs) {
  const Spoiling& spoiling = GetParam();
  const TemporaryFolder folder;
  const std::string path = folder.copy(bundled("tiny-prefill-decode.h5"), "spoilt.h5");
  {
    FixtureEditor file(path);
    spoiling.spoil(file, std::string(kStep0Layer1) + spoiling.object);
  }
  const TemporaryFolder out;
  const ProgramRun run = replay("--json " + out.file("report.json") + " " + path);
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("spoilt.h5"));

  const auto report = nlohmann::json::parse(std::ifstream(out.file("report.json")));
  std::vector<std::string> failing;
  for (const auto& comparison : report.at("fixtures").at(0).at("comparisons")) {
    if (comparison.at("verdict") != "pass") {
      failing.push_back(comparison.at("stage"));
      EXPECT_EQ(comparison.at("step"), 0);
      EXPECT_EQ(comparison.at("layer_id"), 1);
    }
  }
  EXPECT_THAT(failing, ::testing::ElementsAre(spoiling.stage)) << "only the spoilt tensor is wrong";
  EXPECT_THAT(run.output, HasSubstr(spoiling.index));

  // The last line is a command that makes just that comparison again, and fails as well.
  const std::size_t command = run.output.rfind("attndiff replay");
  ASSERT_NE(command, std::string::npos) << run.output;
  const ProgramRun again = run_attndiff(run.output.substr(command + 9, run.output.find('\n', command) - command - 9));
  EXPECT_EQ(again.exit_code, 1) << again.output;
}

INSTANTIATE_TEST_SUITE_P(Every, SpoiltResult, ::testing::ValuesIn(kSpoilings),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Replay, AFlippedMaskFailsInEveryFixtureThatHasOne) {
  for (const char* name : {"mid-candidates.h5", "tiny-candidates-odd.h5", "tiny-ties.h5"}) {
    const TemporaryFolder folder;
    const std::string path = folder.copy(bundled(name), name);
    const bool mid = std::string(name) == "mid-candidates.h5";
    {
      FixtureEditor file(path);
      flip_mask(file, std::string("/steps/0000/layers/") + (mid ? "0002" : "0003") + "/expected/stages/candidates");
    }
    const ProgramRun run = replay(path);
    EXPECT_EQ(run.exit_code, 1) << name << "\n" << run.output;
    EXPECT_THAT(run.output, HasSubstr("candidates"));
    EXPECT_THAT(run.output, HasSubstr("[0, 7]"));
  }
}

TEST(Replay, ASpoiltElementFailsInEveryBundledFixture) {
  for (const char* name : kBundled) {
    const TemporaryFolder folder;
    const std::string path = folder.copy(bundled(name), name);
    {
      FixtureEditor file(path);
      file.change("/steps/0001/layers/0000/expected/out", [](std::size_t i, double v) { return i == 9 ? v + 1.0 : v; });
    }
    const ProgramRun run = replay(path);
    EXPECT_EQ(run.exit_code, 1) << name << "\n" << run.output;
    EXPECT_THAT(run.output, HasSubstr(name));
    EXPECT_THAT(run.output, HasSubstr("[0, 9]"));
  }
}

/// A fixture that cannot be read, and the object its message must name.
struct Unreadable {
  const char* name;
  const char* names;
  void (*damage)(const std::string& path);
};

void truncate_file(const std::string& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
}
void remove_weight(const std::string& path) { FixtureEditor(path).remove("/layers/0001/weights/wq_b"); }
void remove_stage(const std::string& path) {
  FixtureEditor(path).remove("/steps/0000/layers/0002/expected/stages/rows");
}
void remove_input(const std::string& path) { FixtureEditor(path).remove("/steps/0002/layers/0001/x"); }
void add_dataset(const std::string& path) {
  FixtureEditor(path).dataset("/steps/0000/layers/0000/expected/stages/kvv", {2}, {0, 0}, {});
}
void transpose_weight(const std::string& path) { FixtureEditor(path).reshape("/layers/0000/weights/wkv", {64, 32}); }
void wrong_role(const std::string& path) {
  FixtureEditor(path).attribute("/layers/0002", "is_kv_source", std::int64_t{1});
}

const Unreadable kUnreadable[] = {
    {"Truncated", "broken.h5", truncate_file},
    {"MissingWeight", "/layers/0001/weights/wq_b", remove_weight},
    {"MissingStage", "/steps/0000/layers/0002/expected/stages/rows", remove_stage},
    {"MissingInput", "/steps/0002/layers/0001/x", remove_input},
    {"ExtraDataset", "/steps/0000/layers/0000/expected/stages/kvv", add_dataset},
    {"TransposedWeight", "/layers/0000/weights/wkv", transpose_weight},
    {"WrongRole", "/layers/0002", wrong_role},
};

class UnreadableFixture : public ::testing::TestWithParam<Unreadable> {};

TEST_P(UnreadableFixture, ExitsWith2NamesTheObjectAndTheOthersStillRun) {
  const TemporaryFolder folder;
  const std::string path = folder.copy(bundled("tiny-prefill-decode.h5"), "broken.h5");
  GetParam().damage(path);
  const std::string good = folder.copy(bundled("tiny-short-prefill.h5"), "good.h5");
  const ProgramRun run = replay(folder.path());
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_THAT(run.output, HasSubstr(GetParam().names));
  EXPECT_THAT(run.output, HasSubstr(good)) << "the other fixture still runs";
  EXPECT_THAT(run.output, HasSubstr("broken.h5"));
}

INSTANTIATE_TEST_SUITE_P(Every, UnreadableFixture, ::testing::ValuesIn(kUnreadable),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Replay, AFailureOutweighsAnUnreadableFixture) {
  const TemporaryFolder folder;
  truncate_file(folder.copy(bundled("tiny-ties.h5"), "broken.h5"));
  {
    FixtureEditor file(folder.copy(bundled("tiny-short-prefill.h5"), "wrong.h5"));
    file.set("/steps/0001/layers/0000/expected/out", 0, 100);
  }
  EXPECT_EQ(replay(folder.path()).exit_code, 1);
}

TEST(Replay, NothingVerifiedIsNoPass) {
  const TemporaryFolder folder;
  EXPECT_EQ(replay(folder.path()).exit_code, 4) << "an empty folder";
  const std::string fixture = bundled("tiny-ties.h5");
  EXPECT_EQ(replay("--stages lse " + fixture).exit_code, 4) << "a stage that is not recorded";
  EXPECT_EQ(replay("--layers 99 " + fixture).exit_code, 4) << "a layer that does not exist";
  EXPECT_EQ(replay("--steps 99 " + fixture).exit_code, 4) << "a step that does not exist";
  EXPECT_EQ(replay("--stages q,lse " + fixture).exit_code, 4) << "one of two stages was not compared";
  EXPECT_EQ(replay("--layers 0,99 " + fixture).exit_code, 4) << "one of two layers was not compared";
}

TEST(Replay, WrongUsageExitsWith2) {
  const std::string fixture = " " + bundled("tiny-ties.h5");
  EXPECT_EQ(replay("--stages nonsense" + fixture).exit_code, 2);
  EXPECT_EQ(replay("--layers x" + fixture).exit_code, 2);
  EXPECT_EQ(replay("--steps 3-1" + fixture).exit_code, 2);
  EXPECT_EQ(replay("--shard 3/2" + fixture).exit_code, 2);
  EXPECT_EQ(replay("--no-such-option" + fixture).exit_code, 2);
  EXPECT_EQ(replay("").exit_code, 2) << "no fixture";
  EXPECT_EQ(run_attndiff("replay --candidate nobody" + fixture).exit_code, 2);
  EXPECT_EQ(run_attndiff("").exit_code, 2);
  EXPECT_EQ(replay("/no/such/file.h5").exit_code, 2);
}

TEST(Replay, AReportThatCannotBeWrittenExitsWith5) {
  const ProgramRun run = replay("--json /no/such/folder/report.json " + bundled("tiny-short-prefill.h5"));
  EXPECT_EQ(run.exit_code, 5) << run.output;
  EXPECT_THAT(run.output, HasSubstr("/no/such/folder"));
}

TEST(Replay, FiltersJudgeOnlyWhatTheyName) {
  const TemporaryFolder out;
  const ProgramRun run = replay("--layers 3 --steps 1-2 --stages idx,q --json " + out.file("r.json") + " " +
                                bundled("tiny-prefill-decode.h5"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const auto comparisons =
      nlohmann::json::parse(std::ifstream(out.file("r.json"))).at("fixtures").at(0).at("comparisons");
  ASSERT_EQ(comparisons.size(), 4U);
  for (const auto& comparison : comparisons) {
    EXPECT_EQ(comparison.at("layer_id"), 3);
    EXPECT_NE(comparison.at("step"), 0);
  }
}

TEST(Replay, ShardsSplitTheFixturesWithoutLoss) {
  const TemporaryFolder out;
  std::size_t fixtures = 0;
  for (const char* shard : {"1/2", "2/2"}) {
    const ProgramRun run = replay(std::string("--shard ") + shard + " --json " + out.file("r.json") + " " +
                                  std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures");
    EXPECT_EQ(run.exit_code, 0) << run.output;
    fixtures += nlohmann::json::parse(std::ifstream(out.file("r.json"))).at("fixtures").size();
  }
  EXPECT_EQ(fixtures, 5U);
}

TEST(Replay, ResultsDoNotDependOnThreads) {
  const TemporaryFolder out;
  std::string reports[2];
  for (const int threads : {1, 2}) {
    const std::string recorded = out.file("recorded.h5");
    ASSERT_EQ(run_attndiff("record --threads " + std::to_string(threads) + " " + bundled("mid-candidates.h5") + " -o " +
                           recorded)
                  .exit_code,
              0);
    reports[threads - 1] = fixture_testing::read_bytes(recorded);
  }
  EXPECT_EQ(reports[0], reports[1]);
}

/// Errors over their bounds to the last digit, whatever the threads and wherever tensors lie in memory.
TEST(Replay, JudgementsDoNotDependOnThreads) {
  const TemporaryFolder out;
  const auto judged = [&](int threads) {
    const std::string json = out.file("report.json");
    const ProgramRun run = run_attndiff("replay --reference cpu --candidate cpu --mode lockstep --threads " +
                                        std::to_string(threads) + " --json " + json + " " + bundled("tiny-ties.h5"));
    EXPECT_EQ(run.exit_code, 0) << run.output;
    return nlohmann::json::parse(std::ifstream(json)).at("fixtures").at(0).at("comparisons");
  };
  const nlohmann::json one = judged(1);
  EXPECT_GT(one.size(), 100);
  EXPECT_EQ(one, judged(2));
  EXPECT_EQ(one, judged(3));
}

TEST(Replay, AKnownFailureIsExcusedUntilItsDate) {
  const TemporaryFolder folder;
  const std::string path = folder.copy(bundled("tiny-short-prefill.h5"), "wrong.h5");
  { FixtureEditor(path).set("/steps/0001/layers/0000/expected/out", 0, 100); }
  const auto list = [&](const char* expires) {
    const std::string file = folder.file("known.toml");
    fixture_testing::write_bytes(
        file, std::string("[[known]]\nfixture = \"wrong.h5\"\nstage = \"out\"\nlayer = 0\n") +
                  "owner = \"ada\"\nreason = \"the recording is spoilt\"\nexpires = " + expires + "\n");
    return "--known-failures " + file + " " + path;
  };
  EXPECT_EQ(replay(path).exit_code, 1);
  const ProgramRun excused = replay(list("2999-01-31"));
  EXPECT_EQ(excused.exit_code, 0) << excused.output;
  EXPECT_THAT(excused.output, HasSubstr("ada"));
  EXPECT_EQ(replay(list("2020-01-31")).exit_code, 1) << "past its date it excuses nothing";
}

TEST(Replay, AFixtureMustCoverWhatItDeclares) {
  const TemporaryFolder folder;
  const std::string path = folder.copy(bundled("tiny-short-prefill.h5"), "declares.h5");
  { FixtureEditor(path).attribute("/", "must_cover", "ring_wraps, zero_kv_blocks"); }
  const ProgramRun run = replay(path);
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_THAT(run.output, HasSubstr("never exercised: zero_kv_blocks"));
  { FixtureEditor(path).attribute("/", "must_cover", "ring_wraps"); }
  EXPECT_EQ(replay(path).exit_code, 0);
  { FixtureEditor(path).attribute("/", "must_cover", "no_such_counter"); }
  EXPECT_EQ(replay(path).exit_code, 2);
}

TEST(Replay, WhatMustBeCoveredIsNamedRightForEveryCommand) {
  const TemporaryFolder folder;
  const std::string path = folder.copy(bundled("tiny-short-prefill.h5"), "declares.h5");
  for (const auto& [names, problem] :
       {std::pair{"no_such_counter", "no such coverage counter"}, std::pair{",", "no such coverage counter"},
        std::pair{"ring_wraps,ring_wraps", "a coverage counter named twice"}}) {
    { FixtureEditor(path).attribute("/", "must_cover", names); }
    for (const char* command : {"validate ", "inspect ", "replay --candidate recorded "}) {
      const ProgramRun run = run_attndiff(command + path);
      EXPECT_EQ(run.exit_code, 2) << command << names << run.output;
      EXPECT_THAT(run.output, HasSubstr(std::string("declares.h5: / attribute must_cover: ") + problem)) << command;
    }
  }
}

TEST(Replay, LockstepJudgesTheReferenceAgainstItself) {
  const TemporaryFolder folder;
  const std::string made = folder.file("micro.h5");
  ASSERT_EQ(run_attndiff("generate --preset micro -o " + made).exit_code, 0);
  const ProgramRun run = run_attndiff("replay --candidate cpu --mode lockstep --steps 0-3 " + made);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("lockstep"));
  EXPECT_EQ(replay("--mode lockstep " + made).exit_code, 2) << "recorded takes nothing from outside";
}

TEST(Replay, AnElementBeyondItsBoundIsLocated) {
  const TemporaryFolder folder;
  const std::string path = folder.copy(bundled("tiny-prefill-decode.h5"), "spoilt.h5");
  {
    FixtureEditor file(path);
    zero_row<32, 11>(file, std::string(kStep0Layer1) + "o");
  }
  EXPECT_THAT(replay(path).output, HasSubstr("head 3")) << "row 11 is head 3 of token 2";
}

TEST(Replay, AToleranceFileOverridesAndIsChecked) {
  const TemporaryFolder folder;
  const std::string fixture = bundled("tiny-ties.h5");
  fixture_testing::write_bytes(folder.file("strict.toml"), "[stages.out]\nrule = \"exact\"\n");
  const ProgramRun strict = replay("--tolerances " + folder.file("strict.toml") + " " + fixture);
  EXPECT_EQ(strict.exit_code, 1) << "52 elements of out differ by a unit\n" << strict.output;
  fixture_testing::write_bytes(folder.file("bad.toml"), "[stages.nonsense]\nrule = \"exact\"\n");
  const ProgramRun bad = replay("--tolerances " + folder.file("bad.toml") + " " + fixture);
  EXPECT_EQ(bad.exit_code, 2) << bad.output;
  EXPECT_THAT(bad.output, HasSubstr("nonsense"));
}

}  // namespace
}  // namespace attndiff
