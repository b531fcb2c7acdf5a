#include "harness/recipe/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/recipe/bases.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kWindowLayer = "[[layers]]\nlayer_id = 0\nratio = 0\n";
const std::string kTiny = "[config]\nbase = \"tiny\"\n";

std::string message_of(const std::string& text) {
  try {
    (void)parse_recipe(text, "r.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.details().file, "r.toml");
    return error.what();
  }
  return "parsed";
}

TEST(Recipe, ReadsTheCompactForm) {
  const Recipe r = parse_recipe(
      "note = \"n\"\nseed = 7\nprefill = 5\ndecode = 2\n[config]\nbase = \"tiny\"\nwindow = 4\nrope_factor = 8\n"
      "index_keys = \"own\"\n[values]\nnorm_spread = 0.5\n[values.gain]\nwq_b = 2\n" +
          kWindowLayer + "weights = \"e4m3\"\n",
      "r.toml");
  EXPECT_EQ(r.note, "n");
  EXPECT_EQ(r.seed, 7U);
  ASSERT_EQ(r.steps.size(), 3U);
  EXPECT_EQ(r.steps[0].shape.tokens, 5);
  EXPECT_EQ(r.steps[2].shape.start_pos, 6);
  EXPECT_EQ(r.steps[2].shape.tokens, 1);
  EXPECT_EQ(r.config.window, 4);
  EXPECT_EQ(r.config.rope_factor, 8.0);
  EXPECT_EQ(r.config.dim, 64);
  EXPECT_EQ(r.config.max_seq, 7);
  EXPECT_EQ(r.config.max_tokens, 5);
  EXPECT_EQ(r.config.index_keys, IndexKeyRule::own);
  EXPECT_EQ(r.values.norm_spread, 0.5);
  EXPECT_EQ(r.values.gain.at("wq_b"), 2.0);
  EXPECT_EQ(r.layers[0].weights, WeightFormat::e4m3);
  EXPECT_FALSE(r.resumes());
}

TEST(Recipe, ReadsListedStepsAndAResume) {
  const Recipe listed = parse_recipe("[[steps]]\ntokens = 3\n[[steps]]\ntokens = 1\n" + kTiny + kWindowLayer, "r.toml");
  ASSERT_EQ(listed.steps.size(), 2U);
  EXPECT_EQ(listed.steps[1].shape.start_pos, 3);
  const Recipe resumed = parse_recipe("start_pos = 9\ndecode = 2\n" + kTiny + kWindowLayer, "r.toml");
  EXPECT_TRUE(resumed.resumes());
  EXPECT_EQ(resumed.steps[1].shape.start_pos, 10);
  EXPECT_EQ(resumed.config.max_seq, 11);
}

TEST(Recipe, EveryNumberCanBeGivenWithoutABase) {
  const ModelConfig& tiny = *find_base("tiny");
  std::string config = "[config]\n";
  for (const ConfigInt& entry : config_ints()) {
    const bool sized = entry.member == &ModelConfig::max_seq || entry.member == &ModelConfig::max_tokens;
    config += std::string(entry.name) + " = " + std::to_string(sized ? 3 : tiny.*entry.member) + "\n";
  }
  const std::string reals =
      "eps = 1e-20\nrope_theta = 1e4\ncompress_rope_theta = 4e4\nrope_factor = 40\nbeta_fast = 32\nbeta_slow = 1\n";
  const Recipe r = parse_recipe("prefill = 3\n" + config + reals + kWindowLayer, "r.toml");
  for (const ConfigReal& entry : config_reals()) {
    EXPECT_EQ(r.config.*entry.member, tiny.*entry.member) << entry.name;
  }
  EXPECT_EQ(r.config.q_rank, tiny.q_rank);
  EXPECT_THAT(message_of("prefill = 3\n" + config + kWindowLayer),
              AllOf(HasSubstr("config.eps"), HasSubstr("no eps, rope_theta, compress_rope_theta")));
}

TEST(Recipe, UnknownKeysAreRefused) {
  const std::string sound = "prefill = 3\n" + kTiny;
  EXPECT_THAT(message_of("prefil = 3\n" + kTiny + kWindowLayer),
              AllOf(HasSubstr("prefil: unknown key"), HasSubstr("prefill"), HasSubstr("line 1")));
  EXPECT_THAT(message_of(sound + "dims = 3\n" + kWindowLayer), HasSubstr("config.dims: unknown key"));
  EXPECT_THAT(message_of(sound + kWindowLayer + "is_source = true\n"), HasSubstr("layers[0].is_source: unknown key"));
  EXPECT_THAT(message_of(sound + "[values]\nrms = 1\n" + kWindowLayer), HasSubstr("values.rms: unknown key"));
  EXPECT_THAT(message_of(sound + "[values.gain]\nwq = 1.0\n" + kWindowLayer), HasSubstr("values.gain.wq"));
  EXPECT_THAT(message_of("[[steps]]\ntokens = 1\nseq = 1\n" + kTiny + kWindowLayer),
              HasSubstr("steps[0].seq: unknown key"));
}

TEST(Recipe, WrongTypesNameKeyExpectedAndFound) {
  EXPECT_THAT(message_of("prefill = \"3\"\n" + kTiny + kWindowLayer),
              AllOf(HasSubstr("prefill: wrong type"), HasSubstr("expected an integer"), HasSubstr("found string")));
  EXPECT_THAT(message_of("prefill = 3\n" + kTiny + "eps = true\n" + kWindowLayer),
              AllOf(HasSubstr("config.eps"), HasSubstr("expected a number"), HasSubstr("found boolean")));
  EXPECT_THAT(message_of("prefill = 3\n" + kTiny + kWindowLayer + "is_kv_source = 1\n"),
              AllOf(HasSubstr("layers[0].is_kv_source"), HasSubstr("true or false")));
  EXPECT_THAT(message_of("prefill = 3\nlayers = 2\n" + kTiny), HasSubstr("expected an array of tables"));
  EXPECT_THAT(message_of("note = 3\nprefill = 3\n" + kTiny + kWindowLayer), HasSubstr("expected a string"));
  EXPECT_THAT(message_of("config = 3\nprefill = 3\n" + kWindowLayer), HasSubstr("expected a table"));
  EXPECT_THAT(message_of("prefill = -3\n" + kTiny + kWindowLayer), HasSubstr("expected an integer from 0"));
  EXPECT_THAT(message_of("prefill = 3\n[config\n"), AllOf(HasSubstr("line 2"), HasSubstr("not valid TOML")));
}

TEST(Recipe, UnknownNamesListTheKnownOnes) {
  EXPECT_THAT(message_of("prefill = 3\n[config]\nbase = \"huge\"\n" + kWindowLayer),
              AllOf(HasSubstr("released, micro, tiny, mid"), HasSubstr("found huge")));
  EXPECT_THAT(message_of("prefill = 3\n" + kTiny + "index_keys = \"mine\"\n" + kWindowLayer),
              HasSubstr("expected slot or own, found mine"));
  EXPECT_THAT(message_of("prefill = 3\n" + kTiny + "family = \"v9\"\n" + kWindowLayer),
              HasSubstr("expected deepseek-v41, found v9"));
  EXPECT_THAT(message_of("prefill = 3\n" + kTiny + kWindowLayer + "weights = \"q2\"\n"),
              HasSubstr("expected bf16 or e4m3, found q2"));
  EXPECT_THAT(
      message_of("must_cover = \"ring_wrap\"\nprefill = 3\n" + kTiny + kWindowLayer),
      AllOf(HasSubstr("must_cover: no such coverage counter"), HasSubstr("ring_wraps"), HasSubstr("ring_wrap\"")));
}

TEST(Recipe, MissingPartsAreNamed) {
  EXPECT_THAT(message_of("prefill = 3\n" + kWindowLayer), HasSubstr("config: missing table"));
  EXPECT_THAT(message_of("prefill = 3\n" + kTiny + "[[layers]]\nlayer_id = 0\n"), HasSubstr("layers[0].ratio"));
  EXPECT_THAT(message_of("[[steps]]\nstart_pos = 0\n" + kTiny + kWindowLayer), HasSubstr("steps[0].tokens"));
  EXPECT_THAT(message_of("prefill = 3\n" + kTiny), HasSubstr("there are 0 layers"));
  EXPECT_THAT(message_of(kTiny + kWindowLayer), HasSubstr("there are 0 steps"));
}

TEST(Recipe, TwoFormsOfStepsContradict) {
  EXPECT_THAT(message_of("prefill = 3\n[[steps]]\ntokens = 1\n" + kTiny + kWindowLayer),
              HasSubstr("prefill: contradicts steps"));
  EXPECT_THAT(message_of("start_pos = 4\nprefill = 3\n" + kTiny + kWindowLayer),
              AllOf(HasSubstr("prefill"), HasSubstr("start_pos = 4")));
}

TEST(Recipe, ContradictionsComeAllAtOnce) {
  EXPECT_THAT(message_of("[[steps]]\ntokens = 3\n[[steps]]\nstart_pos = 4\ntokens = 2\n" + kTiny +
                         "head_dim = 40\nmax_seq = 5\nmax_tokens = 2\n[values]\nnorm_spread = 1.5\n" + kWindowLayer),
              AllOf(HasSubstr("head_dim 40"), HasSubstr("step 1: starts at 4"), HasSubstr("step 1: decodes 2 tokens"),
                    HasSubstr("step 0: 3 tokens exceed max_tokens 2"), HasSubstr("step 1: ends at 6, beyond max_seq 5"),
                    HasSubstr("values.norm_spread is 1.5")));
}

TEST(Recipe, SlotsNeedAnEarlierSourceOfTheSameRatio) {
  const std::string start = "prefill = 3\n" + kTiny;
  const std::string source = "[[layers]]\nlayer_id = 1\nratio = 1\nis_kv_source = true\nis_index_source = true\n";
  EXPECT_THAT(message_of(start + "[[layers]]\nlayer_id = 3\nratio = 2\n"),
              AllOf(HasSubstr("layer 3 (ratio 2 reader): reads the slot compress_kv, which no earlier layer writes"),
                    HasSubstr("reads the slot selection")));
  EXPECT_THAT(message_of(start + source + "[[layers]]\nlayer_id = 3\nratio = 2\n"),
              HasSubstr("reads the slot compress_kv of layer 1, whose ratio is 1"));
  EXPECT_THAT(message_of(start + source +
                         "[[layers]]\nlayer_id = 3\nratio = 1\nis_index_source = true\nuses_candidates = true\n"),
              HasSubstr("reads the slot candidates, which no earlier layer writes"));
  EXPECT_EQ(message_of(start + source + "[[layers]]\nlayer_id = 3\nratio = 1\n"), "parsed");
}

TEST(Recipe, OwnersMustBeSourcesOfAResume) {
  const std::string source = "[[layers]]\nlayer_id = 1\nratio = 1\nis_kv_source = true\nis_index_source = true\n";
  EXPECT_THAT(message_of("prefill = 3\n" + kTiny + "[initial_state]\ncompress_kv_owner = 1\n" + source),
              HasSubstr("compress_kv_owner is set, but the steps start at position 0"));
  EXPECT_THAT(message_of("start_pos = 3\ndecode = 1\n" + kTiny + "[initial_state]\nindex_k_owner = 0\n" + source),
              HasSubstr("index_k_owner is 0, which is no kv+index source"));
}

TEST(Recipe, E4m3NeedsWholeBlocksOfInputs) {
  EXPECT_THAT(message_of("prefill = 3\n[config]\nbase = \"micro\"\n" + kWindowLayer + "weights = \"e4m3\"\n"),
              HasSubstr("wo_b [160, 80] cannot be e4m3"));
}

TEST(Recipe, AMissingFileIsAnInputError) {
  try {
    (void)read_recipe("no-such-recipe.toml");
    FAIL() << "read a file that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.details().file, "no-such-recipe.toml");
  }
}

}  // namespace
}  // namespace attndiff
