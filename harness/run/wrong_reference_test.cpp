// References with one known fault each, judged against results recorded from torch: each must fail, and at the right
// stage. The right reference passes the same fixture.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "harness/backends/cpu.h"
#include "harness/backends/recorded.h"
#include "harness/mutants/selection_orders.h"
#include "harness/run/replay.h"
#include "reference/contract/bfloat16.h"
#include "reference/formats.h"

namespace attndiff {
namespace {

using deepseek_v41::Steps;

constexpr int kThreads = 2;

std::string fixture(const std::string& name) { return std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures/" + name; }

FixtureReport judge(const std::string& file, Steps steps) {
  ReplayBackends backends;
  backends.reference = make_cpu_backend(kThreads, "cpu-faulty", std::move(steps));
  backends.candidates.push_back(make_recorded_backend());
  ReplayOptions options;
  options.mode = ReplayMode::free;
  return replay_fixture(fixture(file), backends, options);
}

/// Stages of the earliest layer call in which anything failed: what a user looks at first.
std::set<std::string> first_failing_stages(const FixtureReport& report) {
  std::set<std::string> stages;
  const ComparisonRecord* first = nullptr;
  for (const ComparisonRecord& record : report.comparisons) {
    if (!fails_run(record.result.verdict)) {
      continue;
    }
    if (first == nullptr) {
      first = &record;
    }
    if (record.step == first->step && record.layer_id == first->layer_id) {
      stages.insert(record.stage);
    }
  }
  return stages;
}

void expect_fails_at(const std::string& file, Steps steps, const std::string& stage) {
  EXPECT_EQ(judge(file, {}).verdict, Verdict::pass) << "the right reference must pass";
  const FixtureReport report = judge(file, std::move(steps));
  EXPECT_TRUE(fails_run(report.verdict)) << name_of(report.verdict);
  EXPECT_FALSE(report.error.has_value()) << *report.error;
  EXPECT_EQ(first_failing_stages(report).count(stage), 1U) << "stage " << stage << " is not among the first to fail";
}

void reciprocal_fp4_e4m3(std::span<float> row) {
  constexpr float kFloor = 6.0F * 0x1p-9F;
  for (std::size_t begin = 0; begin < row.size(); begin += 16) {
    const auto block = row.subspan(begin, 16);
    float amax = kFloor;
    for (const float v : block) {
      amax = std::max(amax, std::fabs(v));
    }
    const float s = reference::e4m3_decode(reference::e4m3_encode(amax / reference::kE2m1Max));
    const float inverse = 1.0F / s;
    for (float& v : block) {
      v = round_bf16(reference::e2m1_round(std::clamp(v * inverse, -6.0F, 6.0F)) * s);
    }
  }
}

TEST(WrongReference, ReciprocalInsteadOfDivisionInAQuantiser) {
  Steps steps;
  steps.quantise_latent = reciprocal_fp4_e4m3;
  // It moves 3 or 4 of 9,600 latent entries by one step each. The latents themselves agree, so nothing excuses that.
  expect_fails_at("mid-candidates.h5", std::move(steps), "rows");
}

TEST(WrongReference, LowestIndexTies) {
  Steps steps;
  steps.select_row = [](auto scores, auto visible, auto picks) {
    reference::select_row(scores, visible, picks, mutants::lowest_index_topk);
  };
  expect_fails_at("tiny-ties.h5", std::move(steps), "idx");
}

TEST(WrongReference, MissingInnerRoundingOfTheIndexScore) {
  Steps steps;
  steps.index_scores = [](const reference::IndexScoreArgs& a) {
    const std::size_t heads = a.w.size();
    const std::size_t width = a.q.size() / heads;
    for (std::size_t p = 0; p < a.out.size(); ++p) {
      float sum = 0;
      for (std::size_t h = 0; h < heads; ++h) {
        const float dot = std::inner_product(a.q.begin() + static_cast<std::ptrdiff_t>(h * width),
                                             a.q.begin() + static_cast<std::ptrdiff_t>((h + 1) * width),
                                             a.keys.begin() + static_cast<std::ptrdiff_t>(p * width), 0.0F);
        sum += std::max(dot, 0.0F) * a.w[h];
      }
      a.out[p] = sum;
    }
  };
  expect_fails_at("mid-candidates.h5", std::move(steps), "index_score");
}

TEST(WrongReference, CandidateSourceAppliesItsOwnMask) {
  Steps steps;
  steps.applies_candidates = [](const LayerRole& role) { return role.uses_candidates || role.is_candidate_source; };
  expect_fails_at("mid-candidates.h5", std::move(steps), "idx");
}

TEST(WrongReference, NewestBlockNotPinned) {
  Steps steps;
  steps.candidate_mask_row = [](auto scores, auto /*visible*/, const auto& config, auto mask) {
    constexpr std::int64_t kNothingVisible = 0;
    reference::candidate_mask_row(scores, kNothingVisible, config, mask);
  };
  expect_fails_at("mid-candidates.h5", std::move(steps), "candidates");
}

}  // namespace
}  // namespace attndiff
