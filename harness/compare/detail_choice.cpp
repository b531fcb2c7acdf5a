#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "harness/compare/detail_parts.h"

namespace attndiff {
namespace {

using Positions = std::vector<std::int64_t>;

/// What a row chooses, ascending, each position once; absent entries (-1) are none.
Positions chosen(StageKind kind, std::span<const double> row) {
  Positions positions;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (kind == StageKind::mask ? row[i] != 0 : row[i] >= 0) {
      positions.push_back(kind == StageKind::mask ? static_cast<std::int64_t>(i) : static_cast<std::int64_t>(row[i]));
    }
  }
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

/// One side's scores of one query, empty where it publishes none.
std::vector<double> scores_of(const Tensor* scores, std::int64_t row, std::int64_t rows) {
  if (scores == nullptr || scores->shape().rank() != 2 || scores->shape()[0] != rows) {
    return {};
  }
  std::vector<double> values(static_cast<std::size_t>(scores->shape()[1]));
  read_row(*scores, row * scores->shape()[1], values);
  return values;
}

std::optional<double> score_at(const std::vector<double>& scores, std::int64_t position) {
  const auto i = static_cast<std::size_t>(position);
  return i < scores.size() ? std::optional(scores[i]) : std::nullopt;
}

/// The lowest score chosen minus the highest not chosen; nothing where either is lacking or is no number.
std::optional<double> margin(const std::vector<double>& scores, const Positions& positions) {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
  bool took = false;
  bool left = false;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::binary_search(positions.begin(), positions.end(), static_cast<std::int64_t>(i))) {
      lowest = std::min(lowest, scores[i]);
      took = true;
    } else {
      highest = std::max(highest, scores[i]);
      left = true;
    }
  }
  const double difference = lowest - highest;
  return took && left && !std::isnan(difference) ? std::optional(difference) : std::nullopt;
}

DisputedRow disputed_row(std::int64_t row, const Positions& ours, const Positions& theirs,
                         const std::vector<double>& our_scores, const std::vector<double>& their_scores) {
  Positions differing;
  std::set_symmetric_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(), std::back_inserter(differing));
  DisputedRow disputed;
  disputed.row = row;
  disputed.differing = static_cast<std::int64_t>(differing.size());
  differing.resize(std::min(differing.size(), DisputedRow::kMostPositions));
  for (const std::int64_t position : differing) {
    const bool by_reference = std::binary_search(ours.begin(), ours.end(), position);
    disputed.positions.push_back({.position = position,
                                  .by_reference = by_reference,
                                  .by_candidate = !by_reference,
                                  .reference_score = score_at(our_scores, position),
                                  .candidate_score = score_at(their_scores, position)});
  }
  return disputed;
}

}  // namespace

void add_disputes(StageKind kind, const Tensor& reference, const Tensor& candidate, const ChoiceScores& scores,
                  ComparisonDetail& detail) {
  const Shape& shape = reference.shape();
  const std::size_t width = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
  const std::int64_t rows = reference.count() / static_cast<std::int64_t>(width);
  std::vector<double> ours(width);
  std::vector<double> theirs(width);
  for (std::int64_t row = 0; row < rows; ++row) {
    read_row(reference, row * static_cast<std::int64_t>(width), ours);
    read_row(candidate, row * static_cast<std::int64_t>(width), theirs);
    if (ours == theirs) {
      continue;
    }
    ++detail.disputed_rows;
    if (detail.disputed.size() == ComparisonDetail::kMostRows) {
      continue;
    }
    const Positions our_choice = chosen(kind, ours);
    const Positions their_choice = chosen(kind, theirs);
    const std::vector<double> our_scores = scores_of(scores.reference, row, rows);
    const std::vector<double> their_scores = scores_of(scores.candidate, row, rows);
    DisputedRow disputed = disputed_row(row, our_choice, their_choice, our_scores, their_scores);
    // A mask keeps whole blocks and pins the newest: no single score separates what it keeps from what it drops.
    if (kind == StageKind::index) {
      disputed.reference_margin = margin(our_scores, our_choice);
      disputed.candidate_margin = margin(their_scores, their_choice);
    }
    detail.disputed.push_back(std::move(disputed));
  }
}

}  // namespace attndiff
