#include "reference/deepseek_v41/bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "reference/deepseek_v41/bound_parts.h"
#include "reference/deepseek_v41/bounds_test_support.h"

namespace attndiff::deepseek_v41 {
namespace {

double norm_of_row(const Tensor& t, std::size_t row) {
  const auto width = static_cast<std::size_t>(t.shape()[t.shape().rank() - 1]);
  return norm2(t.as<float>().subspan(row * width, width));
}

/// A move in one piece exists only where a value is rounded before the stage's last step.
TEST(StageSlack, OnlyWhatIsRoundedOnTheWayMovesInOnePiece) {
  const std::set<int> in_one_piece{kQr, kQ, kKvPre, kLatent, kIndexKPre, kIndexQPre, kIndexW, kIndexScore, kOg};
  std::set<int> seen;
  for (const LayerRole& role : {LayerRole{.layer_id = 0}, source_role(1), source_role(2)}) {
    LayerBounds bounds(role, 1);
    for (const auto& [id, value] : bounds.seen().stages) {
      const std::optional<StageSlack> slack = bounds.of(id);
      if (!slack) {
        continue;
      }
      seen.insert(id);
      ASSERT_EQ(slack->values.shape(), value.shape()) << id;
      const auto rows = static_cast<std::size_t>(value.count() / value.shape()[value.shape().rank() - 1]);
      ASSERT_EQ(slack->moves.size(), in_one_piece.contains(id) ? rows : 0) << id;
      for (std::size_t row = 0; row < slack->moves.size(); ++row) {
        EXPECT_LE(slack->moves[row], norm_of_row(slack->values, row) * 1.000001) << id << ", row " << row;
      }
    }
  }
  EXPECT_TRUE(seen.contains(kQ) && seen.contains(kLatent) && seen.contains(kLse) && seen.contains(kOg));
}

TEST(StageSlack, DoesNotDependOnThreads) {
  LayerBounds one(source_role(2), 1);
  LayerBounds three(source_role(2), 3);
  for (const auto& [id, value] : one.seen().stages) {
    const std::optional<StageSlack> a = one.of(id);
    const std::optional<StageSlack> b = three.of(id);
    ASSERT_EQ(a.has_value(), b.has_value()) << id;
    if (a) {
      EXPECT_TRUE(same_bytes(a->values, b->values)) << id;
      EXPECT_EQ(a->moves, b->moves) << id;
    }
  }
}

/// Two bf16 values; turned back at `position`, the first of them lies beside a rounding boundary and the second does
/// not.
struct BoundaryPair {
  float even = 0;
  float odd = 0;
  float spread = 0;  ///< of the first
};

BoundaryPair pair_on_a_boundary(const ModelConfig& config, const LayerRole& role, std::int64_t position) {
  const double angle = reference::rotary_angle(reference::rotary_frequencies(config, role.ratio)[0], position);
  const reference::RotaryPhase phase{.cos = {static_cast<float>(std::cos(angle))},
                                     .sin = {static_cast<float>(std::sin(angle))}};
  std::mt19937 engine(5);
  std::uniform_real_distribution<float> any(1, 2);
  for (;;) {
    const float even = round_bf16(any(engine));
    const float odd = round_bf16(any(engine));
    std::vector<float> turned{even, odd};
    reference::rotate_back(turned, phase);
    const float slack = turn_slack(even, odd);
    const float spread = rounding_spread(turned[0], slack);
    if (spread > 0 && rounding_spread(turned[1], slack) == 0) {
      return {even, odd, spread};
    }
  }
}

/// One entry of `o` that turning back may round either way moves every output of its group at once.
TEST(StageSlack, OneTurnedEntryMovesAllOutputsOfItsGroup) {
  LayerBounds bounds(LayerRole{.layer_id = 0}, 1);
  const ModelConfig& c = bounds.model().config;
  const std::size_t token = 7;
  Tensor& o = bounds.seen().stages.at(kO);
  for (Bf16& v : o.as<Bf16>()) {
    v = Bf16{};
  }
  const BoundaryPair pair = pair_on_a_boundary(c, bounds.model().roles[0], token);
  const auto head = static_cast<std::size_t>(c.head_dim);
  const std::size_t column = head - static_cast<std::size_t>(c.rope_dim);  // of head 0, so of group 0
  const std::size_t at = token * static_cast<std::size_t>(c.n_heads) * head + column;
  o.as<Bf16>()[at] = to_bf16(pair.even);
  o.as<Bf16>()[at + 1] = to_bf16(pair.odd);

  const std::optional<StageSlack> slack = bounds.of(kOg);
  ASSERT_TRUE(slack);
  const Tensor wo_a = to_f32(bounds.model().weights[0].at("wo_a").values);
  const auto depth = static_cast<std::size_t>(wo_a.shape()[1]);
  double squares = 0;
  for (std::int64_t r = 0; r < c.o_rank; ++r) {
    squares += std::pow(wo_a.as<float>()[static_cast<std::size_t>(r) * depth + column], 2);
  }
  for (std::size_t t = 0; t < slack->moves.size(); ++t) {
    const double due = t == token ? pair.spread * std::sqrt(squares) : 0;
    EXPECT_NEAR(slack->moves[t], due, 1e-6 * due) << t;
  }
}

}  // namespace
}  // namespace attndiff::deepseek_v41
