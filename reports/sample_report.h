#pragma once

#include <limits>
#include <string>

#include "harness/compare/report.h"

namespace attndiff::test {

inline ComparisonRecord passing(const std::string& stage, std::size_t step) {
  ComparisonRecord c;
  c.step = step;
  c.start_pos = step == 0 ? 0 : 20 + static_cast<std::int64_t>(step);
  c.tokens = step == 0 ? 21 : 1;
  c.layer_id = 2;
  c.layer_kind = "ratio 2 kv+index source";
  c.candidate = "cuda";
  c.mode = "free";
  c.stage = stage;
  c.tolerance = "|d| <= 1 unit";
  c.repro = "attndiff replay --stages " + stage + " a.h5";
  c.result.verdict = Verdict::pass;
  c.result.counted = true;
  c.result.count = 128;
  c.result.allowed_differences = 6;
  c.result.bound_ratio = 0.25 * static_cast<double>(step);
  c.result.worst = ComparedElement{.flat = 0,
                                   .index = {0, 0},
                                   .reference = 0.5,
                                   .candidate = 0.5,
                                   .reference_bits = "3f00",
                                   .candidate_bits = "3f00"};
  c.result.reason = "equal";
  return c;
}

/// A NaN at [0, 3] where 0.5 was due.
inline ComparisonRecord failing(const std::string& stage, std::size_t step) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  ComparisonRecord c = passing(stage, step);
  Comparison& r = c.result;
  r.verdict = Verdict::fail;
  r.mismatches = r.judged_differences = r.violations = r.nonfinite_mismatches = 1;
  r.max_abs = r.max_ulp = r.rel_l2 = kInf;
  r.bound_ratio = kInf;
  r.worst_row = ComparedRow{{0}, 0.0};
  r.worst->flat = 3;
  r.worst->index = {0, 3};
  r.worst->candidate = std::numeric_limits<double>::quiet_NaN();
  r.worst->candidate_bits = "7fc0";
  r.reason = "1 of 128 elements are NaN or infinite on one side and not the same on the other";
  return c;
}

/// failing() with every kind of detail.
inline ComparisonRecord detailed(const std::string& stage, std::size_t step) {
  ComparisonRecord c = failing(stage, step);
  auto d = std::make_shared<ComparisonDetail>();
  d->shape = {1, 128};
  d->axes = {"token", "column"};
  d->histogram.unit = "bfloat16 unit";
  d->histogram.equal = 127;
  d->histogram.nonfinite = 1;
  d->histogram.below.assign(ErrorHistogram::kClasses, 0);
  d->histogram.above.assign(ErrorHistogram::kClasses, 0);
  d->maps.push_back({.row_axis = "token",
                     .column_axis = "column",
                     .row_extent = 1,
                     .column_extent = 128,
                     .row_tile = 1,
                     .column_tile = 2,
                     .rows = {".!" + std::string(62, '.')}});
  d->worst.push_back(*c.result.worst);
  d->disputed_rows = 1;
  d->disputed.push_back({.row = 0,
                         .differing = 2,
                         .positions = {{.position = 4,
                                        .by_reference = true,
                                        .by_candidate = false,
                                        .reference_score = 1.5,
                                        .candidate_score = -std::numeric_limits<double>::infinity()},
                                       {.position = 9,
                                        .by_reference = false,
                                        .by_candidate = true,
                                        .reference_score = 1.25,
                                        .candidate_score = std::nullopt}},
                         .reference_margin = 0.25,
                         .candidate_margin = std::nullopt});
  c.detail = std::move(d);
  return c;
}

inline FixtureReport fixture(const std::string& path, std::vector<ComparisonRecord> comparisons,
                             std::optional<std::string> error = std::nullopt) {
  FixtureReport f;
  f.path = path;
  f.error = std::move(error);
  f.comparisons = std::move(comparisons);
  f.verdict = overall_verdict(f);
  return f;
}

inline RunReport run_of(std::vector<FixtureReport> fixtures) {
  return {.tool_version = "0.1.0",
          .reference = "cpu",
          .candidates = {"cuda"},
          .mode = "free",
          .fixtures = std::move(fixtures),
          .unanswered = {},
          .problems = {}};
}

}  // namespace attndiff::test
