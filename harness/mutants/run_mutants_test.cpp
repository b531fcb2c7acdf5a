#include "harness/mutants/run_mutants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"
#include "reference/contract/families.h"
#include "reference/rotary.h"

namespace attndiff {
namespace {

using deepseek_v41::Steps;

constexpr int kThreads = 1;

MutantFixtures& fixtures() {
  static MutantFixtures all;
  return all;
}

const Mutant& mutant(const std::string& name) {
  const auto& all = mutant_catalogue();
  return *std::find_if(all.begin(), all.end(), [&](const Mutant& m) { return m.name == name; });
}

class Catalogue : public testing::TestWithParam<Mutant> {};

TEST_P(Catalogue, ComesOutAsDue) {
  const MutantResult result = run_mutant(GetParam(), fixtures(), kThreads);
  EXPECT_TRUE(result.as_due()) << mutant_matrix({result});
}

std::string test_name(const testing::TestParamInfo<Mutant>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The others are run by the program's own test, in processes.
std::vector<Mutant> that_run_in_process() {
  std::vector<Mutant> mutants;
  const auto& all = mutant_catalogue();
  std::copy_if(all.begin(), all.end(), std::back_inserter(mutants), [](const Mutant& m) { return !m.needs_process; });
  return mutants;
}

INSTANTIATE_TEST_SUITE_P(Mutants, Catalogue, testing::ValuesIn(that_run_in_process()), test_name);

TEST(MutantCatalogue, NamesAreUniqueAndStagesAndFixturesExist) {
  std::set<std::string> fixture_names;
  for (const MutantFixture& f : mutant_fixtures()) {
    EXPECT_TRUE(fixture_names.insert(f.name).second) << f.name;
  }
  std::set<std::string> names;
  for (const Mutant& m : mutant_catalogue()) {
    EXPECT_TRUE(names.insert(m.name).second) << m.name;
    EXPECT_FALSE(m.description.empty()) << m.name;
    EXPECT_EQ(fixture_names.count(m.fixture), 1U) << m.name;
    EXPECT_EQ(family_named("deepseek-v41").find(m.stage) != nullptr, m.kind == MutantKind::fault) << m.name;
    EXPECT_EQ(m.proof.empty(), m.kind != MutantKind::equivalent) << m.name;
  }
}

TEST(MutantCatalogue, HasAtLeastFortyFaultsAndSomeAtEveryStageThatComputes) {
  std::set<std::string> stages;
  std::int64_t faults = 0;
  for (const Mutant& m : mutant_catalogue()) {
    faults += m.kind == MutantKind::fault ? 1 : 0;
    stages.insert(m.stage);
  }
  EXPECT_GE(faults, 40);
  for (const char* stage : {"qr", "q", "kv", "ring", "comp_state", "latent", "index_k_pre", "index_k", "index_w",
                            "index_score", "candidates", "selection", "compress_kv", "idx", "lse", "o", "og", "out"}) {
    EXPECT_EQ(stages.count(stage), 1U) << "no mutant is wrong at " << stage;
  }
}

TEST(RunMutant, AHarmlessOneLives) {
  const Mutant harmless =
      mutants::step_fault("harmless", "turns as the reference does", {"q", "tiny"}, &Steps::rotate, reference::rotate);
  const MutantResult result = run_mutant(harmless, fixtures(), kThreads);
  EXPECT_EQ(result.outcome, MutantOutcome::lives);
  EXPECT_FALSE(result.as_due());
  EXPECT_FALSE(result.lockstep.has_value());
  EXPECT_FALSE(result.free.has_value());
  EXPECT_THAT(mutant_matrix({result}), testing::HasSubstr("harmless is not as due: the gate passes it"));
}

TEST(RunMutant, AWrongDeclarationIsMisblamed) {
  Mutant wrong = mutant("rotary-half-split");
  wrong.stage = "kv_pre";  // q comes before
  const MutantResult result = run_mutant(wrong, fixtures(), kThreads);
  EXPECT_EQ(result.outcome, MutantOutcome::misblamed);
  EXPECT_FALSE(result.as_due());
  ASSERT_TRUE(result.lockstep.has_value());
  EXPECT_EQ(result.lockstep->stage, "q");
  EXPECT_THAT(mutant_matrix({result}), testing::HasSubstr("0 of 1 faults"));
}

TEST(RunMutant, AFaultyControlIsAccused) {
  Mutant control = mutant("rotary-half-split");
  control.kind = MutantKind::control;
  const MutantResult result = run_mutant(control, fixtures(), kThreads);
  EXPECT_EQ(result.outcome, MutantOutcome::accused);
  EXPECT_FALSE(result.as_due());
}

TEST(RunMutant, AFaultDueInFreeModeIsNamedThere) {
  Mutant free = mutant("rotary-half-split");
  free.mode = "free";
  const MutantResult result = run_mutant(free, fixtures(), kThreads);
  EXPECT_EQ(result.outcome, MutantOutcome::killed);
  EXPECT_EQ(result.named()->mode, "free");
}

TEST(RunMutant, AFixtureThatCannotBeJudgedIsAnError) {
  Mutant refusing = mutant("crashes-in-decode");
  refusing.make = mutants::with_stage("out", [](const LayerCall&, TensorView&) {
    throw Error(ErrorKind::input, "a part of the fixture is unreadable");
  });
  const MutantResult result = run_mutant(refusing, fixtures(), kThreads);
  EXPECT_EQ(result.outcome, MutantOutcome::error);
  EXPECT_THAT(result.error, testing::HasSubstr("unreadable"));
}

TEST(MutantFixtures, AnUnknownNameIsRefused) { EXPECT_THROW((void)fixtures().path("no-such"), Error); }

}  // namespace

/// Names a mutant in test listings.
void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }  // NOLINT(readability-identifier-naming)

}  // namespace attndiff
