#include "harness/mutants/gpu_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/backends/registry.h"
#include "harness/mutants/run_mutants.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

class GpuMutantCatalogue : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_mutant_catalogue().empty()) {
      GTEST_SKIP() << "built without a CUDA toolkit";
    }
  }
};

TEST_F(GpuMutantCatalogue, NamesAreUniqueAndStagesAndFixturesExist) {
  std::set<std::string> fixtures;
  for (const MutantFixture& f : mutant_fixtures()) {
    fixtures.insert(f.name);
  }
  std::set<std::string> names;
  for (const Mutant& m : gpu_mutant_catalogue()) {
    EXPECT_TRUE(names.insert(m.name).second) << m.name;
    EXPECT_FALSE(m.description.empty()) << m.name;
    EXPECT_EQ(fixtures.count(m.fixture), 1U) << m.name;
    EXPECT_NE(m.kind, MutantKind::equivalent) << m.name;
    EXPECT_EQ(family_named("deepseek-v41").find(m.stage) != nullptr, m.kind == MutantKind::fault) << m.name;
    EXPECT_TRUE(m.mode == "lockstep" || m.mode == "free") << m.name;
    EXPECT_TRUE(m.make != nullptr) << m.name;
  }
}

TEST_F(GpuMutantCatalogue, HasFaultsAndControlsAndTenFaultsAtReleasedGeometry) {
  std::int64_t faults = 0;
  std::int64_t controls = 0;
  std::set<std::string> released;
  for (const Mutant& m : gpu_mutant_catalogue()) {
    faults += m.kind == MutantKind::fault && !at_released_geometry(m) ? 1 : 0;
    controls += m.kind == MutantKind::control ? 1 : 0;
    if (at_released_geometry(m)) {
      EXPECT_EQ(m.kind, MutantKind::fault) << m.name;
      released.insert(m.name);
    }
  }
  EXPECT_GE(faults, 20);
  EXPECT_GE(controls, 3);
  EXPECT_GE(released.size(), 10U);
}

TEST_F(GpuMutantCatalogue, ReleasedGeometryMeansEveryLayerKindAndBothLengths) {
  std::set<std::string> fixtures;
  for (const Mutant& m : gpu_mutant_catalogue()) {
    if (at_released_geometry(m)) {
      fixtures.insert(m.fixture);
    }
  }
  for (const char* fixture :
       {"released-window-2048", "released-window-40000", "released-kv2-40000", "released-reader2-40000",
        "released-cand1-40000", "released-index1-40000", "released-reader1-40000"}) {
    EXPECT_EQ(fixtures.count(fixture), 1U) << fixture;
  }
}

/// Skips, with the reason, where no GPU is usable: never a pass.
class GpuMutant : public GpuMutantCatalogue {
 protected:
  void SetUp() override {
    GpuMutantCatalogue::SetUp();
    if (IsSkipped()) {
      return;
    }
    try {
      static_cast<void>(make_backend("cuda", 1));
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
  }

  static MutantResult run(const std::string& name) {
    static MutantFixtures fixtures;
    const auto& all = gpu_mutant_catalogue();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Mutant& m) { return m.name == name; });
    return run_mutant(*found, fixtures, 0);
  }
};

TEST_F(GpuMutant, AFaultIsKilledAtItsStage) {
  const MutantResult result = run("rotary-half-split");
  EXPECT_EQ(result.outcome, MutantOutcome::killed) << mutant_matrix({result});
}

TEST_F(GpuMutant, AFaultWithMemoryIsKilledAtItsStage) {
  const MutantResult result = run("selection-of-the-step-before");
  EXPECT_EQ(result.outcome, MutantOutcome::killed) << mutant_matrix({result});
}

TEST_F(GpuMutant, AControlLives) {
  const MutantResult result = run("split-attention-declared-mid");
  EXPECT_EQ(result.outcome, MutantOutcome::lives) << mutant_matrix({result});
}

}  // namespace
}  // namespace attndiff
