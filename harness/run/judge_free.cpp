#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <map>
#include <optional>

#include "harness/compare/compare.h"
#include "harness/run/judge.h"
#include "harness/run/score_margin.h"

namespace attndiff {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::equal(a.raw(), a.raw() + a.bytes(), b.raw(), b.raw() + b.bytes());
}

bool is_decision(const StageInfo& stage) { return stage.kind == StageKind::index || stage.kind == StageKind::mask; }

/// Relative 2-norm difference of each leading index of two tensors of one shape.
std::vector<double> row_differences(const Tensor& a, const Tensor& b) {
  const Tensor x = to_f32(a);
  const Tensor y = to_f32(b);
  const auto rows = static_cast<std::size_t>(a.shape()[0]);
  std::vector<double> differences(rows);
  const std::size_t width = rows == 0 ? 0 : static_cast<std::size_t>(a.count()) / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    double moved = 0;
    double size = 0;
    for (std::size_t i = r * width; i < (r + 1) * width; ++i) {
      const double d = static_cast<double>(x.as<float>()[i]) - y.as<float>()[i];
      moved += d * d;
      size += static_cast<double>(x.as<float>()[i]) * x.as<float>()[i];
    }
    // Not a number where an input is not one: then nothing is excused.
    differences[r] = size > 0 && std::isfinite(moved) ? std::sqrt(moved / size) : 0;
  }
  return differences;
}

/// How much the stage's real inputs differ already, for each of its leading indices.
std::vector<double> input_differences(const StageInfo& stage, const FreeEvidence& e, std::int64_t rows) {
  std::vector<double> total(static_cast<std::size_t>(rows), 0.0);
  for (const int id : stage.inputs) {
    const Tensor* ours = e.following.find(id);
    const Tensor* theirs = e.candidate.find(id);
    if (e.followed.contains(id) || ours == nullptr || theirs == nullptr || !(ours->shape() == theirs->shape())) {
      continue;
    }
    const std::vector<double> differences = row_differences(*ours, *theirs);
    const bool by_row = static_cast<std::int64_t>(differences.size()) == rows;
    const double largest = differences.empty() ? 0 : *std::max_element(differences.begin(), differences.end());
    for (std::size_t r = 0; r < total.size(); ++r) {
      total[r] = std::hypot(total[r], by_row ? differences[r] : largest);
    }
  }
  return total;
}

/// True when the stage is made, without a sum on the way, from stages that both sides publish, and these agree bit for
/// bit.
bool is_determined(const StageInfo& stage, const FreeEvidence& e) {
  if (stage.inputs.empty()) {
    return false;  // made from x and weights: what happens in between is not seen
  }
  return std::all_of(stage.inputs.begin(), stage.inputs.end(), [&](int id) {
    const Tensor* ours = e.following.find(id);
    const Tensor* theirs = e.candidate.find(id);
    if (e.reference.find(id) == nullptr) {
      return true;  // the call has no such stage
    }
    if (ours != nullptr && theirs != nullptr) {
      return same(*ours, *theirs);
    }
    const StageInfo& input = e.family.stages[static_cast<std::size_t>(id)];
    return !input.summed && is_determined(input, e);
  });
}

/// The tolerance of a quantised stage whose inputs agree: no flip before it can excuse a difference. One element may
/// differ where a rotation lies between, whose table may be off by a unit of float32.
StageTolerance without_flips(StageTolerance tolerance) {
  tolerance.max_different_fraction = 0;
  tolerance.always_allowed = 1;
  return tolerance;
}

/// True when two selections differ only among positions whose scores are equal on both sides.
bool differs_among_equal_scores(const Tensor& ours, const Tensor& theirs, const Tensor& our_scores,
                                const Tensor& their_scores) {
  const auto k = static_cast<std::size_t>(ours.shape()[1]);
  const auto len = static_cast<std::size_t>(our_scores.shape()[1]);
  const Tensor a = to_f32(our_scores);
  const Tensor b = to_f32(their_scores);
  for (std::int64_t t = 0; t < ours.shape()[0]; ++t) {
    const auto row = static_cast<std::size_t>(t);
    const auto mine = ours.as<std::int32_t>().subspan(row * k, k);
    const auto other = theirs.as<std::int32_t>().subspan(row * k, k);
    std::vector<std::int32_t> moved;
    std::set_symmetric_difference(mine.begin(), mine.end(), other.begin(), other.end(), std::back_inserter(moved));
    for (const std::int32_t p : moved) {
      const bool in_range = p >= 0 && static_cast<std::size_t>(p) < len;
      if (!in_range ||
          a.as<float>()[row * len + static_cast<std::size_t>(p)] !=
              a.as<float>()[row * len + static_cast<std::size_t>(moved.front())] ||
          b.as<float>()[row * len + static_cast<std::size_t>(p)] !=
              b.as<float>()[row * len + static_cast<std::size_t>(moved.front())]) {
        return false;
      }
    }
  }
  return true;
}

std::int64_t differing_rows(const Tensor& a, const Tensor& b) {
  const std::vector<double> differences = row_differences(a, b);
  return std::count_if(differences.begin(), differences.end(), [](double d) { return d > 0; });
}

/// The verdict on a different choice of a candidate that does not publish what it chose from.
void settle_uncertified(const StageInfo& stage, const FreeEvidence& e, Comparison& result) {
  const StageTolerance& tolerance = e.tolerances.at(stage);
  const auto finding = score_margin(stage, tolerance, e);
  if (finding && finding->within_limits) {
    result.verdict = Verdict::explained;
    result.reason = fmt::format(
        "not certified, but allowed by the tolerance file: {} of {} rows differ, by positions within {:.3g} rms of the "
        "reference's threshold",
        finding->rows, e.candidate.find(stage.id)->shape()[0], finding->farthest);
    return;
  }
  result.verdict = Verdict::uncertified;
  result.reason += "; the candidate does not publish what would certify another choice";
  if (finding) {
    result.reason += fmt::format(", and {} rows differ, by positions up to {:.3g} rms from the reference's threshold",
                                 finding->rows, finding->farthest);
  }
}

/// The verdict on a decision that may legitimately differ between free-running implementations.
void settle_decision(const StageInfo& stage, const FreeEvidence& e, Comparison& result) {
  const Tensor* following = e.following.find(stage.id);
  const Tensor* reference = e.reference.find(stage.id);
  const Tensor* candidate = e.candidate.find(stage.id);
  if (following == nullptr || candidate == nullptr || !(following->shape() == candidate->shape())) {
    return;
  }
  if (result.verdict == Verdict::pass && reference != nullptr && !same(*following, *reference)) {
    result.verdict = Verdict::explained;
    result.reason = fmt::format(
        "{} of {} rows differ from the reference's own choice, and are exactly what it chooses from the candidate's "
        "own inputs",
        differing_rows(*candidate, *reference), candidate->shape()[0]);
    return;
  }
  if (result.verdict != Verdict::fail) {
    return;
  }
  if (is_tie(stage, e, *following, *candidate)) {
    result.verdict = Verdict::tie;
    result.reason = "differs only among positions whose scores are equal on both sides";
  } else if (!e.certifiable) {
    settle_uncertified(stage, e, result);
  }
}

}  // namespace

bool is_tie(const StageInfo& stage, const FreeEvidence& e, const Tensor& ours, const Tensor& theirs) {
  const bool selects = stage.kind == StageKind::index && stage.inputs.size() == 1 && ours.shape() == theirs.shape();
  if (!selects || e.selection_order == SelectionOrder::torch_cpu || !ascending_sets(theirs)) {
    return false;
  }
  const int scores = stage.inputs.front();
  const Tensor* our_scores = e.following.find(scores);
  const Tensor* their_scores = e.candidate.find(scores);
  const bool scored = our_scores != nullptr && their_scores != nullptr &&
                      e.family.stages[static_cast<std::size_t>(scores)].kind == StageKind::real;
  return scored && differs_among_equal_scores(ours, theirs, *our_scores, *their_scores);
}

bool codes_are_determined(const FreeEvidence& e) {
  return std::all_of(e.family.stages.begin(), e.family.stages.end(), [&](const StageInfo& stage) {
    return stage.kind != StageKind::code || e.reference.find(stage.id) == nullptr ||
           (e.following.find(stage.id) != nullptr && e.candidate.find(stage.id) != nullptr &&
            same(*e.following.find(stage.id), *e.candidate.find(stage.id))) ||
           is_determined(stage, e);
  });
}

std::vector<StageJudgement> judge_free(const std::set<int>& wanted, const FreeEvidence& e) {
  std::vector<StageJudgement> judgements;
  for (const int id : wanted) {
    const StageInfo& stage = e.family.stages[static_cast<std::size_t>(id)];
    const bool determined = stage.kind == StageKind::code && e.same_history && is_determined(stage, e);
    StageTolerance tolerance = determined ? without_flips(e.tolerances.at(stage)) : e.tolerances.at(stage);
    if (stage.weighted_by_softmax && e.arithmetic.bf16_softmax_weights) {
      tolerance.max_different_fraction = 1;  // declared: nearly every element moves, each within its limit
    }
    const Tensor* ours = e.following.find(id);
    const std::vector<double> upstream = ours != nullptr && ours->shape().rank() > 0
                                             ? input_differences(stage, e, ours->shape()[0])
                                             : std::vector<double>{};
    Comparison result = compare(stage, ours, e.candidate.find(id), tolerance, upstream);
    if (is_decision(stage)) {
      settle_decision(stage, e, result);
    }
    judgements.push_back({.stage = &stage, .result = std::move(result), .tolerance = tolerance.text()});
  }
  return judgements;
}

}  // namespace attndiff
