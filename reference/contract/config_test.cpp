#include "reference/contract/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

namespace attndiff {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Model {
  ModelConfig config;
  std::vector<LayerRole> layers;

  [[nodiscard]] std::vector<std::string> findings() const { return violations(config, layers); }
};

Model sound_model() {
  Model m;
  ModelConfig& c = m.config;
  c.dim = 160;
  c.n_heads = 6;
  c.head_dim = 96;
  c.rope_dim = 32;
  c.q_rank = 64;
  c.o_rank = 40;
  c.groups = 2;
  c.window = 8;
  c.index_heads = 3;
  c.index_head_dim = 64;
  c.index_topk = 5;
  c.cand_topk_blocks = 2;
  c.cand_block = 4;
  c.max_seq = 128;
  c.max_tokens = 32;
  c.orig_seq = 64;
  c.eps = 1e-20;
  c.rope_theta = 10000;
  c.compress_rope_theta = 160000;
  c.rope_factor = 16;
  c.beta_fast = 32;
  c.beta_slow = 1;
  m.layers = {{.layer_id = 0},
              {.layer_id = 2, .ratio = 2, .is_kv_source = true, .is_index_source = true},
              {.layer_id = 3, .ratio = 2},
              {.layer_id = 7, .ratio = 1, .is_kv_source = true, .is_index_source = true, .is_candidate_source = true},
              {.layer_id = 8, .ratio = 1, .is_index_source = true, .uses_candidates = true}};
  return m;
}

struct Violation {
  const char* name;
  std::function<void(Model&)> make;
  const char* sentence;  ///< part of the only finding
};

void PrintTo(const Violation& v, std::ostream* out) { *out << v.name; }

const std::vector<Violation>& single_violations() {
  static const std::vector<Violation> kCases{
      {"dim", [](Model& m) { m.config.dim = 0; }, "dim is 0, outside 1 to 16777216"},
      {"q_rank", [](Model& m) { m.config.q_rank = -4; }, "q_rank is -4, outside 1 to 16777216"},
      {"o_rank", [](Model& m) { m.config.o_rank = 0; }, "o_rank is 0"},
      {"window", [](Model& m) { m.config.window = 0; }, "window is 0"},
      {"max_tokens", [](Model& m) { m.config.max_tokens = 0; }, "max_tokens is 0"},
      {"max_seq_too_large", [](Model& m) { m.config.max_seq = (1 << 24) + 1; }, "max_seq is 16777217, outside"},
      {"orig_seq", [](Model& m) { m.config.orig_seq = -1; }, "orig_seq is -1, outside 0 to"},
      {"eps_negative", [](Model& m) { m.config.eps = -1e-9; }, "eps is negative"},
      {"rope_theta", [](Model& m) { m.config.rope_theta = 0; }, "rope_theta is not positive"},
      {"rope_factor_nan", [](Model& m) { m.config.rope_factor = std::numeric_limits<double>::infinity(); },
       "rope_factor is not finite"},
      {"rope_dim_odd", [](Model& m) { m.config.rope_dim = 31; }, "rope_dim 31 must be even"},
      {"groups", [](Model& m) { m.config.groups = 4; }, "n_heads 6 is no multiple of groups 4"},
      {"head_dim", [](Model& m) { m.config.head_dim = 80; }, "head_dim 80 is no multiple of the fp8 block of 32"},
      {"tokens_over_seq", [](Model& m) { m.config.max_tokens = 129; }, "max_tokens 129 exceeds max_seq 128"},
      {"index_heads", [](Model& m) { m.config.index_heads = 0; }, "an index source needs index_heads"},
      {"index_topk", [](Model& m) { m.config.index_topk = 0; }, "an index source needs index_heads"},
      {"index_head_dim", [](Model& m) { m.config.index_head_dim = 48; }, "index_head_dim 48 is no multiple"},
      {"rope_over_index", [](Model& m) { m.config.rope_dim = 66; }, "rope_dim 66 exceeds index_head_dim 64"},
      {"cand_block", [](Model& m) { m.config.cand_block = 0; }, "a candidate source needs cand_block"},
      {"cand_topk_blocks", [](Model& m) { m.config.cand_topk_blocks = 0; }, "a candidate source needs cand_block"},
      {"compress_theta", [](Model& m) { m.config.compress_rope_theta = 0; }, "compress_rope_theta is not positive"},
      {"compress_theta_one", [](Model& m) { m.config.compress_rope_theta = 1; }, "compress_rope_theta 1 makes"},
      {"rope_factor", [](Model& m) { m.config.rope_factor = 0; }, "YaRN (orig_seq > 0) needs"},
      {"beta_fast", [](Model& m) { m.config.beta_fast = 0; }, "YaRN (orig_seq > 0) needs"},
      {"beta_slow", [](Model& m) { m.config.beta_slow = 0; }, "YaRN (orig_seq > 0) needs"},
      {"ratio", [](Model& m) { m.layers[2].ratio = -1; }, "layer 3: ratio -1 is out of range"},
      {"window_only_source", [](Model& m) { m.layers[0].is_kv_source = true; },
       "layer 0: a window-only layer (ratio 0) cannot be a source"},
      {"candidates_without_scores", [](Model& m) { m.layers[2].is_candidate_source = true; },
       "layer 3: a candidate source must be an index source"},
      {"own_candidates", [](Model& m) { m.layers[3].uses_candidates = true; },
       "layer 7: the candidate source does not apply its own mask"},
      {"repeated_layer", [](Model& m) { m.layers[2].layer_id = 2; }, "layer 2: layer_id does not ascend after 2"},
      {"descending_layer", [](Model& m) { m.layers[4].layer_id = 1; }, "layer 1: layer_id does not ascend after 7"},
  };
  return kCases;
}

class SingleViolation : public testing::TestWithParam<Violation> {};

TEST_P(SingleViolation, IsTheOnlyFinding) {
  Model m = sound_model();
  GetParam().make(m);
  EXPECT_THAT(m.findings(), ElementsAre(HasSubstr(GetParam().sentence)));
}

INSTANTIATE_TEST_SUITE_P(Violations, SingleViolation, testing::ValuesIn(single_violations()),
                         [](const auto& violation) { return std::string(violation.param.name); });

TEST(Violations, ASoundModelHasNone) { EXPECT_THAT(sound_model().findings(), IsEmpty()); }

TEST(Violations, AreReportedAllAtOnce) {
  Model m = sound_model();
  m.config.dim = 0;
  m.config.eps = -1;
  m.config.rope_dim = 31;
  m.config.groups = 4;
  m.config.index_topk = 0;
  m.config.beta_fast = 0;
  m.layers[0].is_kv_source = true;
  m.layers[2].layer_id = 2;
  const auto found = m.findings();
  EXPECT_EQ(found.size(), 8U);
  for (const char* part : {"dim is 0", "eps is negative", "rope_dim 31", "groups 4", "index_topk above 0", "beta_fast",
                           "cannot be a source", "does not ascend"}) {
    EXPECT_THAT(found, Contains(HasSubstr(part)));
  }
}

TEST(Violations, PartsThatNoLayerUsesMayBeZero) {
  Model m = sound_model();
  m.layers.resize(1);  // window only
  m.config.index_heads = 0;
  m.config.index_head_dim = 0;
  m.config.index_topk = 0;
  m.config.cand_block = 0;
  m.config.cand_topk_blocks = 0;
  m.config.compress_rope_theta = 0;
  m.config.rope_factor = 0;
  EXPECT_THAT(m.findings(), IsEmpty());
}

TEST(Violations, YarnsNumbersMatterOnlyWithAnOriginalLength) {
  Model m = sound_model();
  m.config.orig_seq = 0;
  m.config.rope_factor = 0;
  m.config.beta_fast = 0;
  m.config.beta_slow = 0;
  EXPECT_THAT(m.findings(), IsEmpty());
}

TEST(Violations, RopeMayFillAHeadButNotMore) {
  Model m = sound_model();
  m.layers.resize(1);
  m.config.rope_dim = 96;
  EXPECT_THAT(m.findings(), IsEmpty());
  m.config.rope_dim = 98;
  EXPECT_THAT(m.findings(), ElementsAre(AllOf(HasSubstr("rope_dim 98"), HasSubstr("at most head_dim 96"))));
}

TEST(KindOf, NamesTheLayersKind) {
  EXPECT_EQ(kind_of({.ratio = 0, .uses_candidates = true}), "window only");
  EXPECT_EQ(kind_of({.ratio = 2, .is_kv_source = true, .is_index_source = true}), "ratio 2 kv+index source");
  EXPECT_EQ(kind_of({.ratio = 1, .is_kv_source = true, .is_index_source = true, .is_candidate_source = true}),
            "ratio 1 kv+index+candidate source");
  EXPECT_EQ(kind_of({.ratio = 1, .is_index_source = true, .uses_candidates = true}),
            "ratio 1 index source with candidates");
  EXPECT_EQ(kind_of({.ratio = 3, .is_kv_source = true}), "ratio 3 kv source");
  EXPECT_EQ(kind_of({.ratio = 2, .uses_candidates = true}), "ratio 2 reader");
}

TEST(ConfigTables, NameEveryMemberOnce) {
  std::set<std::string> names;
  ModelConfig c;
  std::int64_t value = 1;
  for (const ConfigInt& entry : config_ints()) {
    names.insert(entry.name);
    c.*entry.member = value++;
  }
  for (const ConfigReal& entry : config_reals()) {
    names.insert(entry.name);
    c.*entry.member = static_cast<double>(value++);
  }
  EXPECT_EQ(names.size(), 22U);
  // A member named twice would have lost its first value.
  value = 1;
  for (const ConfigInt& entry : config_ints()) {
    EXPECT_EQ(c.*entry.member, value++) << entry.name;
  }
  for (const ConfigReal& entry : config_reals()) {
    EXPECT_EQ(c.*entry.member, static_cast<double>(value++)) << entry.name;
  }
}

TEST(ConfigTables, NamesBelongToTheirMembers) {
  Model m = sound_model();
  std::set<std::pair<std::string, double>> values;
  for (const ConfigInt& entry : config_ints()) {
    values.emplace(entry.name, static_cast<double>(m.config.*entry.member));
  }
  for (const ConfigReal& entry : config_reals()) {
    values.emplace(entry.name, m.config.*entry.member);
  }
  const std::set<std::pair<std::string, double>> expected{{"dim", 160},
                                                          {"n_heads", 6},
                                                          {"head_dim", 96},
                                                          {"rope_dim", 32},
                                                          {"q_rank", 64},
                                                          {"o_rank", 40},
                                                          {"groups", 2},
                                                          {"window", 8},
                                                          {"index_heads", 3},
                                                          {"index_head_dim", 64},
                                                          {"index_topk", 5},
                                                          {"cand_topk_blocks", 2},
                                                          {"cand_block", 4},
                                                          {"max_seq", 128},
                                                          {"max_tokens", 32},
                                                          {"orig_seq", 64},
                                                          {"eps", 1e-20},
                                                          {"rope_theta", 10000},
                                                          {"compress_rope_theta", 160000},
                                                          {"rope_factor", 16},
                                                          {"beta_fast", 32},
                                                          {"beta_slow", 1}};
  EXPECT_EQ(values, expected);
}

TEST(ConfigTables, FlagsBelongToTheirMembers) {
  const std::span<const RoleFlag> flags = role_flags();
  ASSERT_EQ(flags.size(), 4U);
  for (const RoleFlag& flag : flags) {
    LayerRole role;
    role.*flag.member = true;
    const std::string name = flag.name;
    EXPECT_EQ(role.is_kv_source, name == "is_kv_source");
    EXPECT_EQ(role.is_index_source, name == "is_index_source");
    EXPECT_EQ(role.is_candidate_source, name == "is_candidate_source");
    EXPECT_EQ(role.uses_candidates, name == "uses_candidates");
  }
}

TEST(IndexKeyRules, HaveTheNamesOfTheFixtureFormat) {
  EXPECT_STREQ(name_of(IndexKeyRule::slot), "slot");
  EXPECT_STREQ(name_of(IndexKeyRule::own), "own");
  EXPECT_EQ(ModelConfig{}.index_keys, IndexKeyRule::slot);
}

TEST(CallShape, IsAPrefillAtPositionZeroOnly) {
  EXPECT_TRUE((CallShape{.tokens = 1, .start_pos = 0}).prefill());
  EXPECT_FALSE((CallShape{.tokens = 1, .start_pos = 1}).prefill());
}

}  // namespace
}  // namespace attndiff
