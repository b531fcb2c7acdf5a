#include "harness/run/score_margin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/backends/cpu.h"
#include "harness/fixture/testing.h"
#include "harness/mutants/faulty_backend.h"
#include "harness/mutants/selection_orders.h"
#include "harness/run/replay.h"
#include "reference/contract/bfloat16.h"
#include "reference/contract/families.h"
#include "reference/selection.h"

namespace attndiff {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

const ModelFamily& family() { return family_named("deepseek-v41"); }

Tensor scores(std::vector<std::vector<float>> rows) {
  Tensor t(DType::bf16, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())});
  std::size_t i = 0;
  for (const auto& row : rows) {
    for (const float v : row) {
      t.as<Bf16>()[i++] = to_bf16(v);
    }
  }
  return t;
}

Tensor picks(std::vector<std::vector<std::int32_t>> rows) {
  Tensor t(DType::i32, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())});
  std::size_t i = 0;
  for (const auto& row : rows) {
    for (const std::int32_t v : row) {
      t.as<std::int32_t>()[i++] = v;
    }
  }
  return t;
}

StageTolerance limits(double margin, double rows) {
  StageTolerance t;
  t.uncertified_margin = margin;
  t.uncertified_rows = rows;
  t.reasons["uncertified_margin"] = t.reasons["uncertified_rows"] = "a test";
  return t;
}

/// One stage's finding when the reference picked `ours` by these scores and the candidate `theirs`.
std::optional<MarginFinding> found(const Tensor& score, const Tensor& ours, const Tensor& theirs,
                                   const StageTolerance& tolerance, const char* stage = "selection",
                                   const Tensor* selection = nullptr) {
  const Tolerances tolerances = Tolerances::defaults(family());
  StageValues following;
  following.value(family().find("index_score")->id) = score;
  following.value(family().find("selection")->id) = selection == nullptr ? ours : *selection;
  following.value(family().find(stage)->id) = ours;
  StageValues candidate;
  candidate.value(family().find(stage)->id) = theirs;
  return score_margin(*family().find(stage), tolerance,
                      {.family = family(),
                       .tolerances = tolerances,
                       .selection_order = SelectionOrder::torch_cpu,
                       .arithmetic = {},
                       .candidate = candidate,
                       .following = following,
                       .reference = following});
}

// rms of the first row: sqrt((9 + 4 + 1 + 1 + 1) / 5), its threshold for two picks: 2.
const std::vector<float> kRow{3, 2, 1, -1, -1};
const double kRms = std::sqrt(16.0 / 5);

TEST(ScoreMargin, MeasuresFromTheThresholdInRmsOfTheRow) {
  const auto finding = found(scores({kRow, kRow}), picks({{0, 1}, {0, 1}}), picks({{0, 2}, {0, 1}}), limits(1, 0.5));
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->rows, 1);
  EXPECT_DOUBLE_EQ(finding->farthest, 1 / kRms);
  EXPECT_TRUE(finding->within_limits);
}

TEST(ScoreMargin, BothLimitsHold) {
  const Tensor score = scores({kRow, kRow});
  const Tensor ours = picks({{0, 1}, {0, 1}});
  EXPECT_FALSE(found(score, ours, picks({{0, 2}, {0, 1}}), limits(0.5 / kRms, 1))->within_limits);
  EXPECT_FALSE(found(score, ours, picks({{0, 2}, {0, 2}}), limits(1, 0.5))->within_limits);
  EXPECT_TRUE(found(score, ours, picks({{0, 2}, {0, 2}}), limits(1, 1))->within_limits);
}

TEST(ScoreMargin, APickThatWasDroppedCountsAsMuchAsOneThatWasAdded) {
  const auto finding = found(scores({kRow}), picks({{0, 1}}), picks({{1, 2}}), limits(10, 1));
  EXPECT_DOUBLE_EQ(finding->farthest, 1 / kRms);  // 0 and 2 are one away from 2, on either side
}

TEST(ScoreMargin, AHiddenPositionIsNeverNear) {
  const auto finding = found(scores({{3, 2, 1, kHidden, kHidden}}), picks({{0, 1}}), picks({{0, 3}}), limits(1e30, 1));
  ASSERT_TRUE(finding.has_value());
  EXPECT_FALSE(finding->within_limits);
}

TEST(ScoreMargin, APositionOutsideTheRowIsNeverNear) {
  EXPECT_FALSE(found(scores({kRow}), picks({{0, 1}}), picks({{0, 5}}), limits(1e30, 1))->within_limits);
}

TEST(ScoreMargin, WhatIsNoSelectionIsNotMeasured) {
  const Tensor score = scores({kRow});
  const Tensor ours = picks({{0, 1}});
  EXPECT_FALSE(found(score, ours, picks({{1, 1}}), limits(1, 1)).has_value()) << "a position twice";
  EXPECT_FALSE(found(score, ours, picks({{1, 0}}), limits(1, 1)).has_value()) << "out of order";
  EXPECT_FALSE(found(score, ours, picks({{0, -1}}), limits(1, 1)).has_value()) << "-1 where a position was due";
  EXPECT_FALSE(found(score, ours, picks({{0, 2}}), StageTolerance{}).has_value()) << "no margin is set";
}

TEST(ScoreMargin, GatheredRowsAreMeasuredBehindTheWindow) {
  const Tensor selection = picks({{0, 1}});
  const Tensor ours = picks({{6, 7, 8, 9}});  // two window columns, then the picks shifted by 8
  EXPECT_DOUBLE_EQ(found(scores({kRow}), ours, picks({{6, 7, 8, 10}}), limits(1, 1), "idx", &selection)->farthest,
                   1 / kRms);
  EXPECT_FALSE(found(scores({kRow}), ours, picks({{5, 7, 8, 10}}), limits(1, 1), "idx", &selection).has_value())
      << "the window is nobody's choice";
}

/// A candidate with another order of ties; it need not publish what would certify its choice.
FixtureReport with_other_ties(bool publishes_weights, const std::string& tolerances) {
  deepseek_v41::Steps steps;
  steps.select_row = [](auto row, auto visible, auto chosen) {
    reference::select_row(row, visible, chosen, mutants::lowest_index_topk);
  };
  const mutants::MakeBackend make = mutants::with_steps(steps);
  const fixture_testing::TemporaryFolder folder;
  ReplayOptions options;
  options.mode = ReplayMode::free;
  options.threads = 1;
  if (!tolerances.empty()) {
    options.tolerance_file = folder.file("tolerances.toml");
    fixture_testing::write_bytes(options.tolerance_file, tolerances);
  }
  ReplayBackends backends;
  backends.reference = make_cpu_backend(1);
  backends.candidates.push_back(publishes_weights ? make(1, "other-ties")
                                                  : mutants::with_unplanned("index_w", make)(1, "other-ties"));
  return replay_fixture(std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures/tiny-ties.h5", backends, options);
}

constexpr const char* kAllowed = R"([stages.selection]
uncertified_margin = { value = 0.0, reason = "ties only" }
uncertified_rows = { value = 1.0, reason = "any row may hold a tie" }
)";

/// The verdict of the first comparison that fails.
Verdict first_failing(const FixtureReport& report) {
  const auto& all = report.comparisons;
  const auto first = std::find_if(all.begin(), all.end(), [](const ComparisonRecord& c) { return c.fails(); });
  return first == all.end() ? Verdict::pass : first->result.verdict;
}

TEST(ScoreMargin, AnUncertifiedSelectionFailsTheRun) {
  EXPECT_EQ(first_failing(with_other_ties(false, "")), Verdict::uncertified);
}

TEST(ScoreMargin, AToleranceFileLetsItPassWithItsReasonAndTheRestIsJudgedBehindIt) {
  const FixtureReport report = with_other_ties(false, kAllowed);
  EXPECT_EQ(report.verdict, Verdict::explained);
  std::int64_t allowed = 0;
  for (const ComparisonRecord& c : report.comparisons) {
    EXPECT_FALSE(c.fails()) << c.stage << ": " << c.result.reason;
    allowed += c.result.reason.find("allowed by the tolerance file") != std::string::npos ? 1 : 0;
    if (c.stage == "selection" && c.result.verdict == Verdict::explained) {
      EXPECT_THAT(c.tolerance, testing::HasSubstr("uncertified picks within 0 rms"));
    }
  }
  EXPECT_GT(allowed, 0);
}

TEST(ScoreMargin, TooManyRowsAreUncertifiedStill) {
  std::string strict = kAllowed;
  strict.replace(strict.find("value = 1.0"), 11, "value = 0.0");
  EXPECT_EQ(first_failing(with_other_ties(false, strict)), Verdict::uncertified);
}

TEST(ScoreMargin, NoMarginExcusesAChoiceThatCanBeChecked) {
  EXPECT_EQ(first_failing(with_other_ties(true, kAllowed)), Verdict::fail);
}

}  // namespace
}  // namespace attndiff
