#include "harness/run/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "harness/backends/cpu.h"
#include "harness/fixture/reader.h"
#include "harness/run/layer_loader.h"
#include "reference/contract/error.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Counts = std::map<std::string, std::int64_t>;

constexpr float kInf = std::numeric_limits<float>::infinity();

/// The counters that are not zero, but for those of shifted scores, which have tests of their own.
Counts nonzero(const Coverage& coverage) {
  Counts counts;
  std::copy_if(coverage.all().begin(), coverage.all().end(), std::inserter(counts, counts.end()),
               [](const auto& entry) { return entry.second != 0; });
  counts.erase("raised_scores");
  counts.erase("lowered_scores");
  return counts;
}

ModelConfig small_config() {
  ModelConfig c;
  c.window = 4;
  c.index_topk = 2;
  c.cand_block = 2;
  c.cand_topk_blocks = 1;
  return c;
}

Tensor bf16(const Shape& shape, const std::vector<float>& values) {
  Tensor t(DType::bf16, shape);
  std::transform(values.begin(), values.end(), t.as<Bf16>().begin(), [](float v) { return to_bf16(v); });
  return t;
}

template <typename T>
Tensor whole(const Shape& shape, const std::vector<T>& values) {
  Tensor t(DTypeOf<T>::value, shape);
  std::copy(values.begin(), values.end(), t.as<T>().begin());
  return t;
}

/// Counters of calls given as tensors.
class Tally {
 public:
  explicit Tally(LayerRole role) : role_(role) {}

  void call(CallShape shape, const std::map<int, Tensor>& values) {
    counter_.count({.config = config_, .role = role_, .shape = shape}, [&](int stage) {
      const auto it = values.find(stage);
      return it == values.end() ? nullptr : &it->second;
    });
  }
  CoverageCounter& counter() { return counter_; }
  [[nodiscard]] Counts counts() const { return nonzero(counter_.coverage()); }

 private:
  ModelConfig config_ = small_config();
  LayerRole role_;
  CoverageCounter counter_;
};

TEST(Coverage, EveryCounterStartsAtZeroWithADefinition) {
  const Coverage coverage;
  EXPECT_EQ(coverage.all().size(), coverage_counters().size());
  for (const CoverageCounterInfo& counter : coverage_counters()) {
    EXPECT_EQ(coverage.at(counter.name), 0) << counter.name;
    EXPECT_FALSE(counter.definition.empty()) << counter.name;
  }
  EXPECT_THROW(static_cast<void>(coverage.at("ring_wrap")), Error);
  EXPECT_THROW(Coverage().add("ring_wrap"), Error);
}

TEST(Coverage, MergeAdds) {
  Coverage a;
  a.add("ring_wraps", 2);
  Coverage b;
  b.add("ring_wraps");
  b.add("masked_picks");
  a.merge(b);
  EXPECT_EQ(nonzero(a), (Counts{{"ring_wraps", 3}, {"masked_picks", 1}}));
}

TEST(Coverage, RingWrapsFromTheFirstOverwrittenSlotOn) {
  Tally tally({.ratio = 0});
  tally.call({.tokens = 3, .start_pos = 0}, {});
  tally.call({.tokens = 1, .start_pos = 3}, {});
  EXPECT_EQ(tally.counts(), Counts{});
  tally.call({.tokens = 1, .start_pos = 4}, {});
  tally.call({.tokens = 1, .start_pos = 5}, {});
  EXPECT_EQ(tally.counts(), (Counts{{"ring_wraps", 2}}));
  tally.call({.tokens = 4, .start_pos = 0}, {});
  EXPECT_EQ(tally.counts(), (Counts{{"ring_wraps", 2}, {"window_prefills", 1}}));
  tally.call({.tokens = 5, .start_pos = 0}, {});
  EXPECT_EQ(tally.counts(), (Counts{{"ring_wraps", 2},
                                    {"window_prefills", 1},
                                    {"long_prefills", 1},
                                    {"odd_prefills", 1},
                                    {"window_and_one_prefills", 1}}));
}

TEST(Coverage, AGroupIsCarriedOnceASequence) {
  Tally tally({.ratio = 2, .is_kv_source = true});
  tally.call({.tokens = 3, .start_pos = 0}, {});
  tally.call({.tokens = 1, .start_pos = 3}, {});
  EXPECT_EQ(tally.counts(), (Counts{{"completing_decodes", 1}, {"carried_groups", 1}}));
  tally.call({.tokens = 1, .start_pos = 4}, {});
  tally.call({.tokens = 1, .start_pos = 5}, {});
  EXPECT_EQ(tally.counts(),
            (Counts{{"completing_decodes", 2}, {"open_decodes", 1}, {"carried_groups", 1}, {"ring_wraps", 2}}));
}

TEST(Coverage, AWholeGroupIsNotCarriedAndDeclaredStateIs) {
  Tally whole_groups({.ratio = 2, .is_kv_source = true});
  whole_groups.call({.tokens = 2, .start_pos = 0}, {});
  whole_groups.call({.tokens = 1, .start_pos = 2}, {});
  whole_groups.call({.tokens = 1, .start_pos = 3}, {});
  EXPECT_EQ(whole_groups.counts(), (Counts{{"completing_decodes", 1}, {"open_decodes", 1}}));

  Tally resumed({.ratio = 2, .is_kv_source = true});
  resumed.call({.tokens = 1, .start_pos = 3}, {});
  EXPECT_EQ(resumed.counts(), (Counts{{"completing_decodes", 1}, {"carried_groups", 1}}));
}

TEST(Coverage, ZeroBlocksAreWholeBlocksOfTheirQuantiser) {
  std::vector<float> two_rows(96, 0.0F);
  two_rows[40] = 1.0F;  // the first row's second block, cut to 16 values
  two_rows[47] = -0.0F;
  Tally tally({.ratio = 0});
  tally.call({.tokens = 2, .start_pos = 0}, {{deepseek_v41::kKv, bf16({2, 48}, two_rows)},
                                             {deepseek_v41::kCompressKv, bf16({2, 48}, two_rows)},
                                             {deepseek_v41::kIndexQ, bf16({1, 3, 32}, two_rows)},
                                             {deepseek_v41::kIndexK, bf16({3, 32}, two_rows)}});
  EXPECT_EQ(tally.counts(), (Counts{{"zero_kv_blocks", 3},
                                    {"zero_compress_kv_blocks", 5},
                                    {"zero_index_q_blocks", 2},
                                    {"zero_index_k_blocks", 2}}));
}

TEST(Coverage, SelectionsByWhatAQuerySees) {
  // Ratio 2, six tokens, three groups, k = 2: queries see 0, 1, 1, 2, 2, 3 of them.
  Tally tally({.ratio = 2, .is_index_source = true});
  const std::vector<float> scores{9, 9, 9, 1, 9, 9, 1, 9, 9, 3, 2, 9, 3, 2, 9, 1, 5, 5};
  tally.call({.tokens = 6, .start_pos = 0},
             {{deepseek_v41::kIndexScore, bf16({6, 3}, scores)},
              {deepseek_v41::kSelection, whole<std::int32_t>({6, 2}, {-1, -1, 0, -1, 0, -1, 0, 1, 0, 1, 1, 2})}});
  EXPECT_EQ(tally.counts(), (Counts{{"long_prefills", 1},
                                    {"wholly_masked_rows", 1},
                                    {"strict_selections", 1},
                                    {"absent_picks", 4},
                                    {"masked_ties", 3}}));
}

TEST(Coverage, ATieCountsOnlyAcrossTheThreshold) {
  const auto counts = [](const std::vector<float>& scores) {
    Tally tally({.ratio = 1, .is_index_source = true});
    tally.call({.tokens = 1, .start_pos = 3}, {{deepseek_v41::kIndexScore, bf16({1, 4}, scores)},
                                               {deepseek_v41::kSelection, whole<std::int32_t>({1, 2}, {0, 1})}});
    Counts found = tally.counts();
    found.erase("strict_selections");
    return found;
  };
  EXPECT_EQ(counts({5, 4, 4, 3}), (Counts{{"threshold_ties", 1}}));
  EXPECT_EQ(counts({5, 5, 4, 3}), Counts{});
  EXPECT_EQ(counts({5, 4, 3, 3}), Counts{});
  EXPECT_EQ(counts({4, 4, 4, 4}), (Counts{{"threshold_ties", 1}}));
  EXPECT_EQ(counts({0, 4, -0.0F, -1}), (Counts{{"threshold_ties", 1}}));
  EXPECT_EQ(counts({kInf, kInf, kInf, 1}), Counts{}) << "an infinite score is no finite tie";
  EXPECT_EQ(counts({5, -kInf, -kInf, -kInf}), (Counts{{"masked_ties", 1}}));
}

TEST(Coverage, CandidateFilterHidesAndDecides) {
  const auto counts = [](const std::vector<std::uint8_t>& mask, const std::vector<std::int32_t>& picks) {
    Tally tally({.ratio = 1, .is_index_source = true, .uses_candidates = true});
    tally.counter().shared_candidates(whole<std::uint8_t>({1, 4}, mask));
    tally.call({.tokens = 1, .start_pos = 3}, {{deepseek_v41::kIndexScore, bf16({1, 4}, {1, 2, 3, 4})},
                                               {deepseek_v41::kSelection, whole<std::int32_t>({1, 2}, picks)}});
    Counts found = tally.counts();
    found.erase("strict_selections");
    return found;
  };
  EXPECT_EQ(counts({1, 1, 1, 1}, {2, 3}), Counts{});
  EXPECT_EQ(counts({0, 0, 1, 1}, {2, 3}), (Counts{{"candidate_filter", 1}}));
  EXPECT_EQ(counts({1, 1, 0, 0}, {0, 1}), (Counts{{"candidate_filter", 1}, {"candidate_filter_decides", 1}}));
  EXPECT_EQ(
      counts({1, 0, 0, 0}, {0, 3}),
      (Counts{{"candidate_filter", 1}, {"candidate_filter_decides", 1}, {"masked_picks", 1}, {"masked_ties", 1}}));
}

TEST(Coverage, TheNewestBlockIsPinnedWhereItsScoreDoesNotKeepIt) {
  const auto counts = [](const std::vector<float>& scores, const std::vector<std::uint8_t>& mask) {
    Tally tally({.ratio = 1, .is_index_source = true, .is_candidate_source = true});
    tally.call({.tokens = 1, .start_pos = 3}, {{deepseek_v41::kIndexScore, bf16({1, 4}, scores)},
                                               {deepseek_v41::kCandidates, whole<std::uint8_t>({1, 4}, mask)}});
    return tally.counts();
  };
  EXPECT_EQ(counts({9, 1, 2, 3}, {0, 0, 1, 1}), (Counts{{"strict_candidates", 1}, {"newest_block_pinned", 1}}));
  EXPECT_EQ(counts({1, 1, 2, 9}, {0, 0, 1, 1}), (Counts{{"strict_candidates", 1}}));
  EXPECT_EQ(counts({9, 1, 2, 3}, {1, 1, 0, 0}), (Counts{{"strict_candidates", 1}})) << "not pinned, so not counted";
}

TEST(Coverage, AbsentEntries) {
  Tally tally({.ratio = 0});
  tally.call({.tokens = 3, .start_pos = 0},
             {{deepseek_v41::kIdx, whole<std::int32_t>({3, 3}, {0, -1, -1, -1, 0, 1, -1, -1, -1})}});
  EXPECT_EQ(tally.counts(), (Counts{{"absent_entries", 6}, {"leading_absent_entries", 1}}));
}

TEST(MustCover, ReadsNamesAndRefusesWhatIsNone) {
  EXPECT_THAT(parse_must_cover("", "/"), IsEmpty());
  EXPECT_THAT(parse_must_cover("  ", "/"), IsEmpty());
  EXPECT_THAT(parse_must_cover(" ring_wraps ,threshold_ties", "/"), ElementsAre("ring_wraps", "threshold_ties"));
  for (const std::string wrong : {"ring_wrap", "ring_wraps,", ",ring_wraps", "ring_wraps,,masked_ties",
                                  "ring_wraps,ring_wraps", "ring_wraps masked_ties"}) {
    try {
      static_cast<void>(parse_must_cover(wrong, "/ attribute must_cover"));
      ADD_FAILURE() << "accepted " << wrong;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      EXPECT_EQ(e.details().object, "/ attribute must_cover");
      EXPECT_FALSE(e.details().expected.empty());
      EXPECT_FALSE(e.details().found.empty());
    }
  }
}

TEST(MustCover, UnmetAreTheCountersAtZero) {
  Coverage coverage;
  coverage.add("ring_wraps");
  const std::vector<std::string> names{"masked_picks", "ring_wraps", "threshold_ties"};
  EXPECT_THAT(unmet(coverage, names), ElementsAre("masked_picks", "threshold_ties"));
}

/// Counted from the tensors torch recorded, by another program. Where equal scores leave the torch order to decide,
/// that program gives a range: tiny-ties.h5 lies within 33-35 for candidate_filter_decides and 25-29 for
/// newest_block_pinned, mid-candidates.h5 within 107-108 for candidate_filter_decides.
struct FixtureCounts {
  const char* file;
  Counts counts;
};

class BundledFixture : public ::testing::TestWithParam<FixtureCounts> {};

Coverage coverage_of(const std::string& file) {
  const FixtureReader fixture(std::string(ATTNDIFF_SOURCE_DIR) + "/fixtures/" + file);
  const auto backend = make_cpu_backend(2);
  const auto sequence = backend->start(fixture);
  LayerLoader loader(fixture);
  CoverageCounter counter;
  for (std::size_t step = 0; step < fixture.steps().size(); ++step) {
    for (std::size_t layer = 0; layer < fixture.layers().size(); ++layer) {
      sequence->forward(loader.load(step, layer), counter);
    }
  }
  return counter.coverage();
}

TEST_P(BundledFixture, CountsWhatItsRecordedTensorsHold) {
  Counts found = nonzero(coverage_of(GetParam().file));
  for (const char* length : {"window_prefills", "window_and_one_prefills", "several_window_prefills", "odd_prefills",
                             "groupless_prefills"}) {
    found.erase(length);  // the table says how many prefills are long
  }
  EXPECT_EQ(found, GetParam().counts);
}

INSTANTIATE_TEST_SUITE_P(Coverage, BundledFixture,
                         ::testing::Values(FixtureCounts{"mid-candidates.h5",
                                                         {{"absent_entries", 3112},
                                                          {"absent_picks", 2016},
                                                          {"candidate_filter", 107},
                                                          {"candidate_filter_decides", 107},
                                                          {"completing_decodes", 2},
                                                          {"long_prefills", 5},
                                                          {"masked_ties", 125},
                                                          {"newest_block_pinned", 72},
                                                          {"open_decodes", 3},
                                                          {"ring_wraps", 25},
                                                          {"strict_candidates", 107},
                                                          {"strict_selections", 336},
                                                          {"threshold_ties", 20},
                                                          {"wholly_masked_rows", 1}}},
                                           FixtureCounts{"tiny-candidates-odd.h5",
                                                         {{"absent_entries", 328},
                                                          {"absent_picks", 66},
                                                          {"candidate_filter", 31},
                                                          {"candidate_filter_decides", 31},
                                                          {"carried_groups", 1},
                                                          {"completing_decodes", 15},
                                                          {"long_prefills", 7},
                                                          {"masked_ties", 10},
                                                          {"newest_block_pinned", 22},
                                                          {"open_decodes", 15},
                                                          {"ring_wraps", 210},
                                                          {"strict_candidates", 31},
                                                          {"strict_selections", 104},
                                                          {"threshold_ties", 3},
                                                          {"wholly_masked_rows", 1}}},
                                           FixtureCounts{"tiny-prefill-decode.h5",
                                                         {{"absent_entries", 242},
                                                          {"absent_picks", 51},
                                                          {"completing_decodes", 3},
                                                          {"long_prefills", 5},
                                                          {"masked_ties", 5},
                                                          {"open_decodes", 3},
                                                          {"ring_wraps", 30},
                                                          {"strict_selections", 17},
                                                          {"wholly_masked_rows", 1}}},
                                           FixtureCounts{"tiny-short-prefill.h5",
                                                         {{"absent_entries", 147},
                                                          {"candidate_filter", 1},
                                                          {"candidate_filter_decides", 1},
                                                          {"carried_groups", 1},
                                                          {"completing_decodes", 6},
                                                          {"leading_absent_entries", 42},
                                                          {"newest_block_pinned", 1},
                                                          {"open_decodes", 6},
                                                          {"ring_wraps", 35},
                                                          {"strict_candidates", 1},
                                                          {"strict_selections", 14},
                                                          {"threshold_ties", 1}}},
                                           FixtureCounts{"tiny-ties.h5",
                                                         {{"absent_entries", 328},
                                                          {"absent_picks", 66},
                                                          {"candidate_filter", 36},
                                                          {"candidate_filter_decides", 34},
                                                          {"completing_decodes", 4},
                                                          {"long_prefills", 7},
                                                          {"masked_ties", 21},
                                                          {"newest_block_pinned", 28},
                                                          {"open_decodes", 4},
                                                          {"ring_wraps", 56},
                                                          {"strict_candidates", 36},
                                                          {"strict_selections", 119},
                                                          {"threshold_ties", 24},
                                                          {"wholly_masked_rows", 1}}}),
                         [](const auto& test) {
                           std::string name = test.param.file;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace attndiff
