#include "harness/compare/locate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "harness/compare/axis_pattern.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Index = std::array<std::int64_t, Shape::kMaxRank>;
using Predicate = std::function<bool(const Index&)>;

const ModelFamily& family() { return family_named("deepseek-v41"); }

ModelConfig config() {
  ModelConfig c;
  c.dim = 200;
  c.n_heads = 4;
  c.head_dim = 256;
  c.rope_dim = 64;
  c.q_rank = 200;
  c.o_rank = 96;
  c.groups = 2;
  c.window = 8;
  c.index_heads = 3;
  c.index_head_dim = 128;
  c.index_topk = 5;
  c.cand_block = 4;
  c.cand_topk_blocks = 2;
  c.max_seq = 4096;
  c.max_tokens = 512;
  return c;
}

constexpr LayerRole kWindowOnly{.layer_id = 0, .ratio = 0};
constexpr LayerRole kRatio2{.layer_id = 1, .ratio = 2, .is_kv_source = true, .is_index_source = true};
constexpr LayerRole kRatio1{
    .layer_id = 2, .ratio = 1, .is_kv_source = true, .is_index_source = true, .is_candidate_source = true};
constexpr CallShape kPrefill{.tokens = 21, .start_pos = 0};
constexpr CallShape kDecode{.tokens = 1, .start_pos = 43};  // slot 3 of 8

struct Case {
  const char* name;
  const char* stage;
  LayerRole role;
  CallShape call;
  Predicate bad;
  const char* phrase;
};

std::string sentence(const char* stage, const LayerRole& role, const CallShape& call, const Predicate& bad) {
  const StageInfo& info = *family().find(stage);
  const Shape shape = info.shape(config(), role, call).value();
  const Shape strides = shape.strides();
  std::vector<std::int64_t> flat;
  for (std::int64_t f = 0; f < shape.count(); ++f) {
    Index at{};
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      at.at(axis) = f / strides[axis] % shape[axis];
    }
    if (bad(at)) {
      flat.push_back(f);
    }
  }
  return locate(info, config(), role, call, shape, flat);
}

/// True for one element in `n`, the same ones in every run.
Predicate one_in(std::uint32_t n, std::uint32_t seed, const Predicate& within = {}) {
  return [engine = std::mt19937(seed), n, within](const Index& i) mutable {
    const bool drawn = engine() % n == 0;
    return drawn && (!within || within(i));
  };
}

class Located : public ::testing::TestWithParam<Case> {};

TEST_P(Located, NamesThePattern) {
  const Case& c = GetParam();
  EXPECT_THAT(sentence(c.stage, c.role, c.call, c.bad), HasSubstr(c.phrase));
}

const std::vector<Case> kCases{
    {"Nothing", "q", kWindowOnly, kPrefill, [](const Index&) { return false; }, "no element"},
    {"Everything", "out", kWindowOnly, kPrefill, [](const Index&) { return true; }, "every element, all 4200"},
    {"DeadRow", "out", kWindowOnly, kPrefill, [](const Index& i) { return i[0] == 13; },
     "200 of 4200 elements: token 13; every column: one whole row"},
    {"DeadHeadOfOneToken", "o", kWindowOnly, kPrefill, [](const Index& i) { return i[0] == 0 && i[1] == 2; },
     "token 0 (the first); head 2; every column: one whole row"},
    {"LastToken", "out", kWindowOnly, kPrefill, [](const Index& i) { return i[0] == 20; }, "token 20 (the last)"},
    {"LastElement", "out", kWindowOnly, kPrefill, [](const Index& i) { return i[0] == 20 && i[1] == 199; },
     "1 of 4200 elements: token 20 (the last); column 199 (the last); the last element of all"},
    {"EveryTokenButTheFirst", "lse", kWindowOnly, kPrefill, [](const Index& i) { return i[0] > 0; },
     "tokens 1-20; every head"},
    {"EveryTokenButOne", "lse", kWindowOnly, kPrefill, [](const Index& i) { return i[0] != 9; },
     "every token but token 9; every head"},
    {"OneHead", "o", kWindowOnly, kPrefill, [](const Index& i) { return i[1] == 1; },
     "5376 of 21504 elements: every token; head 1; every column"},
    {"SecondTileOf64", "qr", kWindowOnly, kPrefill, [](const Index& i) { return i[1] >= 64 && i[1] < 128; },
     "every token; columns 64-127 (the second tile of 64)"},
    {"LastPartialTile", "qr", kWindowOnly, kPrefill, [](const Index& i) { return i[1] >= 192; },
     "columns 192-199 (the last, partial tile of 64)"},
    {"LastWholeTile", "og", kWindowOnly, kPrefill, [](const Index& i) { return i[1] >= 128; },
     "columns 128-191 (the third tile of 64)"},
    {"ToTheEnd", "qr", kWindowOnly, kPrefill, [](const Index& i) { return i[1] >= 160; },
     "columns 160-199 (beginning at a multiple of 32)"},
    {"WholeTiles", "qr", kWindowOnly, kPrefill, [](const Index& i) { return i[1] >= 32 && i[1] < 128; },
     "columns 32-127 (whole tiles of 32)"},
    {"SeparateTiles", "qr", kWindowOnly, kPrefill,
     [](const Index& i) { return i[1] / 16 == 1 || i[1] / 16 == 4 || i[1] / 16 == 5; },
     "48 columns (tiles 1, 4 and 5 of 16, counted from 0)"},
    {"BeginsAtATile", "qr", kWindowOnly, kPrefill, [](const Index& i) { return i[1] >= 64 && i[1] < 111; },
     "columns 64-110 (beginning at a multiple of 64)"},
    {"EndsAtATile", "qr", kWindowOnly, kPrefill, [](const Index& i) { return i[1] >= 5 && i[1] < 96; },
     "columns 5-95 (ending before a multiple of 32)"},
    {"TokenTile",
     "out",
     kWindowOnly,
     {.tokens = 40, .start_pos = 0},
     [](const Index& i) { return i[0] / 16 == 1; },
     "tokens 16-31 (the second tile of 16); every column"},
    {"HalfOfEachTile", "qr", kWindowOnly, kPrefill, [](const Index& i) { return i[1] % 32 >= 16; },
     "columns 16-31 of every 32"},
    {"OddColumns", "qr", kWindowOnly, kPrefill, [](const Index& i) { return i[1] % 2 == 1; }, "the odd columns"},
    {"RotatedTail", "q", kWindowOnly, kPrefill, [](const Index& i) { return i[2] >= 192; },
     "every head; columns 192-255 (the rotated tail; the fourth tile of 64)"},
    {"OddMembersOfPairs", "q", kWindowOnly, kPrefill, [](const Index& i) { return i[2] >= 192 && i[2] % 2 == 1; },
     "32 columns (the odd members of the rotated pairs)"},
    {"AllButTheRotatedTail", "kv_pre", kWindowOnly, kPrefill, [](const Index& i) { return i[1] < 192; },
     "columns 0-191 (everything before the rotated tail"},
    {"QuantiserBlock", "kv", kWindowOnly, kPrefill, [](const Index& i) { return i[1] / 32 == 2; },
     "columns 64-95 (the third quantiser block of 32)"},
    {"LatentQuantiserBlock", "compress_kv", kRatio2, kPrefill, [](const Index& i) { return i[1] / 16 == 1; },
     "every group; columns 16-31 (the second quantiser block of 16)"},
    {"FirstOfEveryBlock", "index_q", kRatio2, kPrefill, [](const Index& i) { return i[2] % 32 == 0; },
     "column 0 of every quantiser block of 32"},
    {"OutputGroupColumns", "og", kWindowOnly, kPrefill, [](const Index& i) { return i[1] >= 96; },
     "columns 96-191 (output group 1; whole tiles of 32)"},
    {"OutputGroupHeads", "o", kWindowOnly, kPrefill, [](const Index& i) { return i[1] < 2; },
     "heads 0-1 (output group 0); every column"},
    {"NewestSlot", "ring", kWindowOnly, kDecode, [](const Index& i) { return i[0] == 3; },
     "slot 3 (the newest token's slot); every column"},
    {"OldestSlotOfRows", "rows", kRatio2, kDecode, [](const Index& i) { return i[0] == 4; },
     "row 4 (the oldest token's slot)"},
    {"SinceTheWrap", "ring", kWindowOnly, kDecode, [](const Index& i) { return i[0] <= 3; },
     "slots 0-3 (the slots written since the last wrap)"},
    {"NeverWritten",
     "ring",
     kWindowOnly,
     {.tokens = 1, .start_pos = 4},
     [](const Index& i) { return i[0] > 4; },
     "slots 5-7 (the slots never written)"},
    {"CompressedRows", "rows", kRatio2, kDecode, [](const Index& i) { return i[0] >= 8; },
     "rows 8-29 (the compressed rows)"},
    {"OddCompressedRows", "rows", kRatio2, kDecode, [](const Index& i) { return i[0] >= 8 && i[0] % 2 == 1; },
     "11 rows (odd compressed positions)"},
    {"EvenGroups",
     "latent",
     kRatio2,
     {.tokens = 41, .start_pos = 0},
     [](const Index& i) { return i[0] % 2 == 0; },
     "10 groups (even compressed positions)"},
    {"LastGroup", "latent", kRatio2, kPrefill, [](const Index& i) { return i[0] == 9; },
     "group 9 (the last compressed position)"},
    {"GatesOfThePartialGroup", "comp_state", kRatio2, kPrefill, [](const Index& i) { return i[0] == 1 && i[1] == 0; },
     "part gate; group slot 0 (the newest token's; the in-progress group)"},
    {"InProgressGroupVisible", "index_score", kRatio2, kPrefill,
     [](const Index& i) { return i[1] == (i[0] + 1) / 2 && i[0] % 2 == 0; }, "the in-progress group of each query"},
    {"UnseenPositions", "index_score", kRatio2, kPrefill, [](const Index& i) { return i[1] >= (i[0] + 1) / 2; },
     "the positions each query does not see"},
    {"NewestBlock", "candidates", kRatio1, kPrefill, [](const Index& i) { return i[1] / 4 == i[0] / 4; },
     "the newest candidate block of each query"},
    {"CandidateBlock", "candidates", kRatio1, kPrefill, [](const Index& i) { return i[1] / 4 == 2; },
     "every token; positions 8-11 (the third candidate block of 4"},
    {"OwnToken", "idx", kRatio2, kPrefill, [](const Index& i) { return i[1] == std::min<std::int64_t>(i[0], 7); },
     "the entry of each query's own token"},
    {"SelectionEntries", "idx", kRatio2, kPrefill, [](const Index& i) { return i[1] >= 8; },
     "entries 8-12 (the selection entries)"},
    {"NewestEntry", "idx", kRatio2, kDecode, [](const Index& i) { return i[1] == 7; },
     "entry 7 (the newest token's entry)"},
    {"FromTheWrapOn", "idx", kRatio2, kDecode, [](const Index& i) { return i[1] >= 4 && i[1] < 8; },
     "entries 4-7 (the window entries from the wrap of the ring on"},
    {"PastTheFirstWindow", "out", kWindowOnly, kPrefill, [](const Index& i) { return i[0] >= 8; },
     "tokens 8-20 (everything past the first window"},
    {"FewElements", "out", kWindowOnly, kPrefill,
     [](const Index& i) { return (i[0] == 2 && i[1] == 5) || (i[0] == 7 && i[1] == 11) || (i[0] == 9 && i[1] == 0); },
     "3 of 4200 elements: [2, 5], [7, 11] and [9, 0]"},
    {"FewInOneToken", "o", kWindowOnly, kPrefill,
     [](const Index& i) { return i[0] == 2 && ((i[1] == 0 && i[2] == 5) || (i[1] == 3 && i[2] == 7)); },
     "2 of 21504 elements: [2, 0, 5] and [2, 3, 7]; all in token 2"},
    {"MostOfATile", "qr", kWindowOnly, kPrefill,
     [keep = one_in(10, 3)](const Index& i) mutable { return !keep(i) && i[1] >= 64 && i[1] < 128; },
     "every token; columns 64-127 (the second tile of 64); 89 % of the elements there"},
    {"SampleOfATile", "qr", kWindowOnly, kPrefill,
     one_in(10, 4, [](const Index& i) { return i[1] >= 64 && i[1] < 128; }), "(the second tile of 64)"},
    {"SampleOfOneHead", "o", kWindowOnly, kPrefill, one_in(50, 5, [](const Index& i) { return i[1] == 3; }),
     "scattered: every token; head 3 (the last); "},
    {"SampleOfTheTail", "o", kWindowOnly, kPrefill, one_in(50, 6, [](const Index& i) { return i[2] >= 192; }),
     "all in columns 192-255 (the rotated tail"},
};

INSTANTIATE_TEST_SUITE_P(Locate, Located, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

/// Words that claim a pattern.
const std::vector<const char*> kClaims{"tile", "multiple", "block",  "tail",     "pairs", "even ",  "odd ",  "whole",
                                       "slot", "group",    "window", "of every", "query", "all in", "newest"};

void expect_no_claim(const std::string& text) {
  for (const char* claim : kClaims) {
    EXPECT_THAT(text, Not(HasSubstr(claim)));
  }
}

TEST(Locate, NoiseIsNoPattern) {
  for (const std::uint32_t n : {200U, 100U, 30U, 5U, 2U}) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      const std::string text = sentence("q", kWindowOnly, kPrefill, one_in(n, seed));
      SCOPED_TRACE(text);
      EXPECT_THAT(text, HasSubstr("they line up with nothing"));
      expect_no_claim(text);
    }
  }
}

TEST(Locate, NoiseInAFewColumnsIsNoPattern) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const std::string text = sentence("out", kWindowOnly, kPrefill, one_in(400, seed));
    SCOPED_TRACE(text);
    expect_no_claim(text);
  }
}

TEST(Locate, NearlyEverythingIsNoPattern) {
  Predicate keep = one_in(10, 1);
  const std::string text = sentence("q", kWindowOnly, kPrefill, [&](const Index& i) { return !keep(i); });
  EXPECT_THAT(text, HasSubstr("every token; every head; every column; 90 % of the elements there"));
  expect_no_claim(text);
}

TEST(Locate, RandomColumnsOfEveryTokenAreCounted) {
  std::mt19937 engine(7);
  std::vector<bool> wrong(200);
  for (int drawn = 0; drawn < 30; ++drawn) {
    wrong[engine() % wrong.size()] = true;
  }
  const std::string text =
      sentence("qr", kWindowOnly, kPrefill, [&](const Index& i) { return wrong[static_cast<std::size_t>(i[1])]; });
  EXPECT_THAT(text, HasSubstr("every token; 2"));
  EXPECT_THAT(text, HasSubstr("of 200 columns"));
  expect_no_claim(text);
}

TEST(Locate, AnUnalignedRunIsOnlyARun) {
  const std::string text = sentence("qr", kWindowOnly, kPrefill, [](const Index& i) { return i[1] >= 5 && i[1] < 43; });
  EXPECT_EQ(text, "798 of 4200 elements: every token; columns 5-42");
}

TEST(Locate, ThreeTokensOfFiveAreListedEvenIfEven) {
  EXPECT_EQ(sentence("lse", kWindowOnly, {.tokens = 5, .start_pos = 0}, [](const Index& i) { return i[0] % 2 == 0; }),
            "12 of 20 elements: tokens 0, 2 and 4; every head");
}

TEST(Locate, WithoutLandmarksAxesHaveNumbers) {
  const std::vector<std::int64_t> bad{4, 5, 6, 7};
  EXPECT_EQ(locate({}, {3, 4}, bad), "4 of 12 elements: index on axis 0 1; every index on axis 1: one whole row");
  EXPECT_EQ(locate({}, {1, 1}, std::vector<std::int64_t>{0}), "the only element");
  EXPECT_EQ(locate({}, {0, 4}, {}), "no element");
}

TEST(AxisPattern, ChanceIsHypergeometric) {
  EXPECT_DOUBLE_EQ(chance_of(10, 10, 4), 1.0);
  EXPECT_NEAR(chance_of(4, 2, 2), 1.0 / 6, 1e-12);
  EXPECT_NEAR(chance_of(52, 13, 2), 13.0 * 12 / (52 * 51), 1e-12);
  EXPECT_EQ(chance_of(10, 3, 4), 0);
}

}  // namespace
}  // namespace attndiff
