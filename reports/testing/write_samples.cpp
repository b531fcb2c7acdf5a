// Writes reports of made-up runs, for tests that look at them with other programs: write_samples FOLDER

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "reports/atomic_file.h"
#include "reports/changes_text.h"
#include "reports/html.h"
#include "reports/json.h"
#include "reports/junit.h"
#include "reports/markdown.h"

namespace attndiff {
namespace {

constexpr const char* kStages[] = {"qr",        "q",       "kv_pre",       "kv",          "index_w",
                                   "index_k",   "index_q", "compress_pre", "index_score", "candidates",
                                   "selection", "idx",     "rows",         "latent",      "o",
                                   "lse",       "og",      "out",          "ring",        "comp_state"};

/// What a run of that size looks like.
struct Size {
  std::size_t steps = 0;
  std::int64_t layers = 0;
};

/// Details as large as they get: three maps of 64 by 64 cells.
std::shared_ptr<const ComparisonDetail> largest_detail(const ComparedElement& worst) {
  auto d = std::make_shared<ComparisonDetail>();
  d->shape = {64, 64, 512};
  d->axes = {"token", "head", "column"};
  d->histogram.unit = "bfloat16 unit";
  d->histogram.equal = 2'000'000;
  d->histogram.below.assign(ErrorHistogram::kClasses, 1234);
  d->histogram.above.assign(ErrorHistogram::kClasses, 4321);
  for (const auto& [row, column] : {std::pair{"token", "head"}, {"token", "column"}, {"head", "column"}}) {
    HeatMap map{.row_axis = row, .column_axis = column, .row_extent = 64, .column_extent = 64, .rows = {}};
    for (int y = 0; y < 64; ++y) {
      std::string cells(64, '.');
      for (std::size_t x = 0; x < cells.size(); ++x) {
        cells[x] = static_cast<char>('a' + (x * 7 + static_cast<std::size_t>(y) * 3) % 9);
      }
      map.rows.push_back(std::move(cells));
    }
    d->maps.push_back(std::move(map));
  }
  d->worst.assign(ComparisonDetail::kMostElements, worst);
  return d;
}

ComparisonRecord comparison(const std::string& path, const char* stage, std::size_t step, std::int64_t layer) {
  const bool exact =
      std::string(stage) == "idx" || std::string(stage) == "selection" || std::string(stage) == "candidates";
  ComparisonRecord c;
  c.step = step;
  c.start_pos = step == 0 ? 0 : 63 + static_cast<std::int64_t>(step);
  c.tokens = step == 0 ? 64 : 1;
  c.layer_id = layer;
  c.layer_kind = layer % 2 == 0 ? "ratio 2 kv+index source" : "ratio 1 kv+index+candidate source";
  c.candidate = "cuda";
  c.mode = "free";
  c.stage = stage;
  c.tolerance = exact ? "equal" : "|d| <= 1 unit + 0.015625 rms(row); row L2 <= 0.015625; <= 2 % or 6 differ";
  c.repro =
      fmt::format("attndiff replay --reference cpu --candidate cuda --mode free --layers {} --steps {} --stages {} {}",
                  layer, step, stage, path);
  Comparison& r = c.result;
  r.counted = true;
  r.count = 4096;
  r.allowed_differences = 82;
  r.mismatches = r.judged_differences =
      exact ? 0 : static_cast<std::int64_t>((step * 13 + static_cast<std::size_t>(layer) * 7) % 40);
  r.worst = ComparedElement{.flat = 37,
                            .index = {0, 1, 5},
                            .reference = 0.5,
                            .candidate = 0.50390625,
                            .reference_bits = "3f00",
                            .candidate_bits = "3f01"};
  if (!exact) {
    r.bound_ratio =
        0.001 * static_cast<double>((step * 37 + static_cast<std::size_t>(layer) * 101 + c.stage.size() * 53) % 930);
    r.max_abs = 0.00390625;
    r.max_ulp = 1;
    r.rel_l2 = 0.000123456;
  }
  r.reason = exact ? "equal" : "within its tolerance";
  return c;
}

void fail(ComparisonRecord& c) {
  Comparison& r = c.result;
  r.verdict = Verdict::fail;
  r.mismatches = r.judged_differences = r.violations = 16;
  r.max_abs = 1.84375;
  r.max_ulp = 472;
  r.rel_l2 = 0.31;
  r.bound_ratio = 117.25;
  r.worst = ComparedElement{.flat = 55,
                            .index = {0, 1, 23},
                            .reference = -0.921875,
                            .candidate = 0.921875,
                            .reference_bits = "bf6c",
                            .candidate_bits = "3f6c"};
  r.reason = "16 of 128 elements beyond their bound, the worst finite one 117 times it";
  c.location = "16 of 128 elements: head 1; columns 16-31 (the rotated tail; the second tile of 16)";
  auto d = std::make_shared<ComparisonDetail>(*largest_detail(*r.worst));
  d->shape = {1, 4, 32};
  d->histogram.nonfinite = 1;
  d->maps = {{.row_axis = "head",
              .column_axis = "column",
              .row_extent = 4,
              .column_extent = 32,
              .rows = {std::string(32, '.'), std::string(16, '.') + "RQRRQRQ!RRQQRRRQ", std::string(32, '.'),
                       std::string(32, 'c')}}};
  c.detail = std::move(d);
}

/// A selection that differs in one row.
void dispute(ComparisonRecord& c) {
  c.result.verdict = Verdict::fail;
  c.result.mismatches = c.result.violations = 1;
  c.result.reason = "1 of 4096 elements differ";
  auto d = std::make_shared<ComparisonDetail>();
  d->shape = {1, 4};
  d->axes = {"token", "pick"};
  d->histogram.unit = "1";
  d->histogram.below.assign(ErrorHistogram::kClasses, 0);
  d->histogram.above.assign(ErrorHistogram::kClasses, 0);
  d->histogram.above[2] = 1;
  d->histogram.equal = 3;
  d->maps = {{.row_axis = "", .column_axis = "pick", .row_extent = 1, .column_extent = 4, .rows = {".R.."}}};
  d->worst = {{.flat = 1,
               .index = {0, 1},
               .reference = 7,
               .candidate = 9,
               .reference_bits = "00000007",
               .candidate_bits = "00000009"}};
  d->disputed_rows = 1;
  d->disputed = {
      {.row = 0,
       .differing = 2,
       .positions = {{.position = 7, .by_reference = true, .reference_score = 1.5, .candidate_score = 1.5},
                     {.position = 9, .by_candidate = true, .reference_score = 1.25, .candidate_score = 1.25}},
       .reference_margin = 0.25,
       .candidate_margin = -0.25}};
  c.detail = std::move(d);
}

RunReport run_of(const std::string& path, Size size) {
  FixtureReport fixture;
  fixture.path = path;
  for (std::size_t step = 0; step < size.steps; ++step) {
    for (std::int64_t layer = 0; layer < size.layers; ++layer) {
      for (const char* stage : kStages) {
        fixture.comparisons.push_back(comparison(path, stage, step, layer));
        if (fixture.comparisons.size() % 256 == 0) {
          fixture.comparisons.back().detail = largest_detail(*fixture.comparisons.back().result.worst);
        }
      }
    }
  }
  fixture.coverage = {{"ring_wraps", 12}, {"long_prefills", 0}};
  fixture.timings = {{.backend = "cpu", .mode = "reference", .seconds = {1.5}},
                     {.backend = "cuda", .mode = "free", .seconds = {0.5, 0.52, 0.49}}};
  fixture.verdict = overall_verdict(fixture);
  return {.tool_version = "0.1.0",
          .reference = "cpu",
          .candidates = {"cuda"},
          .mode = "free",
          .fixtures = {std::move(fixture)},
          .unanswered = {},
          .problems = {},
          .settings = {{"repeat", "3"}},
          .backends = {{"cpu", "Eigen 3.4"}, {"cuda", "an H200"}}};
}

void write_all(const RunReport& report, const std::string& base) {
  write_json(report, base + ".json");
  write_atomically(base + ".html", html_text(report));
  write_atomically(base + ".xml", junit_text(report));
  write_atomically(base + ".md", markdown_text(report));
}

void write_samples(const std::string& folder) {
  RunReport passed = run_of("fixtures/small.h5", {.steps = 3, .layers = 4});
  write_all(passed, folder + "/passed");

  RunReport failed = run_of("fixtures/odd </script><b>&\"'|`name.h5", {.steps = 3, .layers = 4});
  auto& comparisons = failed.fixtures[0].comparisons;
  const std::size_t per_step = std::size(kStages) * 4;
  dispute(comparisons[per_step * 2 + std::size(kStages) * 2 + 10]);
  fail(comparisons[per_step + std::size(kStages) + 14]);
  comparisons[3].result.verdict = Verdict::unobserved;
  comparisons[3].result.counted = false;
  comparisons[3].result.reason = "inside a fused segment of the candidate";
  comparisons[11].result.verdict = Verdict::explained;
  comparisons[11].result.reason = "1 of 64 rows differ from the reference's own choice";
  fail(comparisons[14]);
  comparisons[14].known_failure = "known failure, attention kernels until 2031-01-31: the split drops the sink";
  failed.fixtures[0].verdict = overall_verdict(failed.fixtures[0]);
  failed.fixtures.push_back({.path = "fixtures/torn.h5",
                             .error = "fixtures/torn.h5: /config: missing",
                             .comparisons = {},
                             .coverage = {},
                             .uncovered = {}});
  failed.fixtures.back().verdict = overall_verdict(failed.fixtures.back());
  failed.problems.push_back({ErrorKind::unavailable, "cuda:7: no such GPU"});
  failed.unanswered = {"stage lse2"};
  write_all(failed, folder + "/failed");

  write_all(run_of("fixtures/large.h5", {.steps = 64, .layers = 40}), folder + "/large");
  write_all(RunReport{}, folder + "/empty");

  const RunReport after = [&] {
    RunReport r = passed;
    fail(r.fixtures[0].comparisons[14]);
    return r;
  }();
  const Changes changes = changes_between(passed, after, {});
  write_atomically(folder + "/changes.html", changes_html(changes));
  write_atomically(folder + "/changes.md", changes_markdown(changes));
}

}  // namespace
}  // namespace attndiff

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: write_samples FOLDER\n");
    return 2;
  }
  attndiff::write_samples(argv[1]);
  return EXIT_SUCCESS;
}
