#include "harness/run/score_margin.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

namespace attndiff {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Picks by row, as positions of the scores; -1 where absent.
using Picks = std::vector<std::vector<std::int32_t>>;

/// The picks of a selection, or those at the end of the rows that attention gathers: there they are shifted by the rows
/// before them, by as much as the reference's own are.
std::optional<Picks> picks_of(const Tensor& entries, const Tensor& reference_entries, const Tensor& selection) {
  const auto columns = static_cast<std::size_t>(entries.shape()[1]);
  const auto picked = static_cast<std::size_t>(selection.shape()[1]);
  const std::size_t before = columns - picked;
  Picks picks;
  for (std::int64_t t = 0; t < entries.shape()[0]; ++t) {
    const auto row = static_cast<std::size_t>(t);
    const auto entry = entries.as<std::int32_t>().subspan(row * columns, columns);
    const auto own = reference_entries.as<std::int32_t>().subspan(row * columns, columns);
    const auto position = selection.as<std::int32_t>().subspan(row * picked, picked);
    if (!std::equal(entry.begin(), entry.begin() + static_cast<std::ptrdiff_t>(before), own.begin())) {
      return std::nullopt;  // the window's part is nobody's choice
    }
    const auto known = std::find_if(position.begin(), position.end(), [](std::int32_t p) { return p >= 0; });
    const auto at = static_cast<std::size_t>(known - position.begin());
    const std::int32_t shift = known == position.end() ? 0 : own[before + at] - *known;
    auto& out = picks.emplace_back();
    for (const std::int32_t e : entry.subspan(before)) {
      out.push_back(e < 0 ? e : e - shift);
    }
  }
  return picks;
}

bool ascending(std::span<const std::int32_t> picks) {
  std::int32_t last = -1;
  for (const std::int32_t p : picks) {
    if (p >= 0 && p <= last) {
      return false;
    }
    last = p >= 0 ? p : last;
  }
  return true;
}

/// Positions that one of two rows of picks has and the other has not; nothing where the second is no ascending set of
/// as many positions as the first.
std::optional<std::vector<std::int32_t>> moved_positions(const std::vector<std::int32_t>& ours,
                                                         const std::vector<std::int32_t>& theirs) {
  const auto absent = [](const auto& row) { return std::count(row.begin(), row.end(), -1); };
  if (absent(ours) != absent(theirs) || !ascending(theirs)) {
    return std::nullopt;
  }
  std::vector<std::int32_t> a = ours;
  std::vector<std::int32_t> b = theirs;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<std::int32_t> moved;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(moved));
  return moved;
}

/// One row's scores as the reference has them.
class RowScores {
 public:
  RowScores(std::span<const float> scores, const std::vector<std::int32_t>& picked) : scores_(scores) {
    double squares = 0;
    std::int64_t finite = 0;
    for (const float s : scores) {
      if (std::isfinite(s)) {
        squares += static_cast<double>(s) * s;
        ++finite;
      }
    }
    rms_ = finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
    for (const std::int32_t p : picked) {
      if (p >= 0) {
        threshold_ = std::min(threshold_, static_cast<double>(scores[static_cast<std::size_t>(p)]));
      }
    }
  }

  /// Of a position from the threshold, in rms; infinite for a position outside the row and between finite and infinite.
  [[nodiscard]] double distance(std::int32_t position) const {
    if (position < 0 || static_cast<std::size_t>(position) >= scores_.size()) {
      return kInfinite;
    }
    const double score = scores_[static_cast<std::size_t>(position)];
    if (score == threshold_) {
      return 0;
    }
    const double distance = std::abs(score - threshold_) / rms_;
    return std::isnan(distance) ? kInfinite : distance;
  }

 private:
  std::span<const float> scores_;
  double rms_ = 0;
  double threshold_ = kInfinite;
};

/// The stage whose scores an index stage chooses from, and the selection in between: itself, or its input.
struct Choice {
  const Tensor* selection = nullptr;
  const Tensor* scores = nullptr;
};

Choice choice_of(const StageInfo& stage, const FreeEvidence& e) {
  const StageInfo* selecting = &stage;
  while (selecting->inputs.size() == 1) {
    const StageInfo& input = e.family.stages[static_cast<std::size_t>(selecting->inputs.front())];
    if (input.kind == StageKind::real) {
      return {.selection = e.following.find(selecting->id), .scores = e.following.find(input.id)};
    }
    selecting = &input;
  }
  return {};
}

}  // namespace

bool ascending_sets(const Tensor& picks) {
  const auto k = static_cast<std::size_t>(picks.shape()[1]);
  for (std::int64_t t = 0; t < picks.shape()[0]; ++t) {
    if (!ascending(picks.as<std::int32_t>().subspan(static_cast<std::size_t>(t) * k, k))) {
      return false;
    }
  }
  return true;
}

std::optional<MarginFinding> score_margin(const StageInfo& stage, const StageTolerance& tolerance,
                                          const FreeEvidence& e) {
  const Tensor* ours = e.following.find(stage.id);
  const Tensor* theirs = e.candidate.find(stage.id);
  const Choice choice = choice_of(stage, e);
  if (!tolerance.allows_uncertified() || choice.selection == nullptr || choice.scores == nullptr || ours == nullptr ||
      theirs == nullptr || !(ours->shape() == theirs->shape())) {
    return std::nullopt;
  }
  const auto own = picks_of(*ours, *ours, *choice.selection);
  const auto other = picks_of(*theirs, *ours, *choice.selection);
  if (!own || !other) {
    return std::nullopt;
  }
  const Tensor scores = to_f32(*choice.scores);
  const auto width = static_cast<std::size_t>(scores.shape()[1]);
  MarginFinding finding;
  for (std::size_t t = 0; t < own->size(); ++t) {
    const auto moved = moved_positions((*own)[t], (*other)[t]);
    if (!moved) {
      return std::nullopt;
    }
    finding.rows += moved->empty() ? 0 : 1;
    const RowScores row(scores.as<float>().subspan(t * width, width), (*own)[t]);
    for (const std::int32_t p : *moved) {
      finding.farthest = std::max(finding.farthest, row.distance(p));
    }
  }
  finding.within_limits =
      finding.farthest <= tolerance.uncertified_margin &&
      static_cast<double>(finding.rows) <= tolerance.uncertified_rows * static_cast<double>(own->size());
  return finding;
}

}  // namespace attndiff
