#include "harness/compare/bounded.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <optional>
#include <type_traits>

#include "harness/compare/element.h"
#include "harness/compare/row_bounds.h"
#include "harness/compare/row_parts.h"

namespace attndiff {
namespace {

constexpr int kBf16Bits = 8;  // significant ones
constexpr std::size_t kNoElement = std::numeric_limits<std::size_t>::max();

/// What a row's errors add up to, and what rounding alone would make of them.
struct RowSums {
  double squares = 0;
  double sum = 0;
  double unit_squares = 0;
  double unit_fourths = 0;
  double signed_unit_squares = 0;
  double slack = 0;
  double slack_squares = 0;
  double move = 0;  ///< by one rounding on the way, in 2-norm
  std::int64_t count = 0;
};

/// What the judgement of some rows found.
struct BoundedRows {
  double max_abs = 0;
  double max_ulp = 0;
  double bound_ratio = 0;
  std::size_t worst = kNoElement;
  std::int64_t violations = 0;
  std::vector<std::int64_t> bad;
  std::size_t room = kMostBad;  ///< for `bad`
  std::int64_t noisy = 0;
  std::int64_t biased = 0;
  double worst_noise = 0;
  double worst_bias = 0;

  /// Takes in what the rows after these found.
  void append(const BoundedRows& after) {
    max_abs = std::max(max_abs, after.max_abs);
    max_ulp = std::max(max_ulp, after.max_ulp);
    if (after.worst != kNoElement && (worst == kNoElement || after.bound_ratio > bound_ratio)) {
      bound_ratio = after.bound_ratio;
      worst = after.worst;
    }
    violations += after.violations;
    const std::size_t kept = std::min(kMostBad - bad.size(), after.bad.size());
    bad.insert(bad.end(), after.bad.begin(), after.bad.begin() + static_cast<std::ptrdiff_t>(kept));
    noisy += after.noisy;
    biased += after.biased;
    worst_noise = std::max(worst_noise, after.worst_noise);
    worst_bias = std::max(worst_bias, after.worst_bias);
  }
};

/// `T`: the stage's element type.
template <typename T>
class BoundedJudge {
 public:
  BoundedJudge(const Tensor& reference, const Tensor& center, const StageSlack& slack, const Tensor& candidate)
      : shape_(reference.shape()),
        reference_tensor_(reference),
        candidate_tensor_(candidate),
        reference_(reference.as<T>()),
        center_(center.as<float>()),
        slack_(slack.values.as<float>()),
        moves_(slack.moves),
        candidate_(candidate.as<T>()) {}

  /// Takes over what the exact comparison found: shapes, counts, non-finite elements, constants.
  Comparison run(Comparison exact, reference::ThreadPool& pool) {
    result_ = std::move(exact);
    const auto width = static_cast<std::size_t>(shape_[shape_.rank() - 1]);
    const RowParts parts(static_cast<std::int64_t>(slack_.size() / width));
    std::vector<BoundedRows> found(parts.count());
    BadRoom room(parts.count());
    parts.run(&pool, [&](std::size_t part, std::int64_t first, std::int64_t last) {
      BoundedRows rows;  // of its own, so that threads do not share a line of memory
      rows.room = room.left(part);
      for (std::int64_t row = first; row < last; ++row) {
        judge_row(static_cast<std::size_t>(row) * width, width, rows);
      }
      room.take(part, rows.bad.size());
      found[part] = std::move(rows);
    });
    BoundedRows all;
    for (const BoundedRows& part : found) {
      all.append(part);
    }
    decide(std::move(all));
    return std::move(result_);
  }

 private:
  void judge_row(std::size_t begin, std::size_t width, BoundedRows& found) const {
    RowSums row;
    if (!judge_sound_row(begin, width, row, found)) {
      for (std::size_t i = begin; i < begin + width; ++i) {
        judge_element(i, row, found);
      }
    }
    if (row.count == 0 || !(beyond_noise(row) > 1 || beyond_bias(row) > 1)) {
      return;
    }
    look_closer(begin, width, row);
    if (const double ratio = beyond_noise(row); ratio > 1) {
      ++found.noisy;
      found.worst_noise = std::max(found.worst_noise, ratio);
    }
    if (const double ratio = beyond_bias(row); ratio > 1) {
      ++found.biased;
      found.worst_bias = std::max(found.worst_bias, ratio);
    }
  }

  /// A uniform error's square has mean u^2 / 12 and variance u^4 / 180.
  static constexpr double kMean = 1.0 / 12.0;
  static constexpr double kVariance = 1.0 / 180.0;

  /// The row's rms error over its limit.
  static double beyond_noise(const RowSums& row) {
    const auto n = static_cast<double>(row.count);
    const double due = row.unit_squares * kMean + kSigmas * std::sqrt(row.unit_fourths * kVariance);
    const double slack = std::max(std::sqrt(row.slack_squares) / 4, row.move);
    return std::sqrt(row.squares / n) / (std::sqrt(due / n) + slack / std::sqrt(n));
  }

  /// The sum of the row's errors over its limit.
  static double beyond_bias(const RowSums& row) {
    const double slack = std::max(row.slack / 4, std::numbers::sqrt2 * row.move);
    return std::fabs(row.sum) / (kSigmas * std::sqrt(row.signed_unit_squares * kMean) + slack);
  }

  /// Allows for what a row beyond its limits may have and most rows have not.
  ///
  /// Only elements of mantissas apart err independently, and a row made of a few codes, or near a few, has few. So the
  /// units of elements that share a mantissa, to an eighth of a unit, are summed before they are squared: their
  /// rounding errors differ by less than that. So errs a query that attends hardly more than one row of codes, whose
  /// weight there is a little below 1.
  ///
  /// And a rounding on the way moves its result as far as it can or not at all: one of them counts whole.
  void look_closer(std::size_t begin, std::size_t width, RowSums& row) const {
    struct Group {
      double unit_squares = 0;
      double signed_units = 0;
    };
    const int bits = std::is_same_v<T, Bf16> ? kBf16Bits : std::numeric_limits<float>::digits;
    constexpr int kEighth = 3;
    std::map<double, Group> groups;
    for (std::size_t i = begin; i < begin + width; ++i) {
      const double y = center_[i];
      if (judged(i)) {
        int exponent = 0;
        Group& group = groups[std::floor(std::ldexp(std::fabs(std::frexp(y, &exponent)), bits + kEighth))];
        const double unit = unit_at<T>(value_of(candidate_[i]));
        group.unit_squares += unit * unit;
        group.signed_units += std::copysign(unit, y);
      }
    }
    row.move = moves_.empty() ? 0 : moves_[begin / width];
    row.unit_fourths = 0;
    row.signed_unit_squares = 0;
    for (const auto& [mantissa, group] : groups) {
      row.unit_fourths += group.unit_squares * group.unit_squares;
      row.signed_unit_squares += group.signed_units * group.signed_units;
    }
  }

  /// Whether an element counts among its row's errors.
  [[nodiscard]] bool judged(std::size_t i) const {
    return std::isfinite(value_of(reference_[i])) && std::isfinite(value_of(candidate_[i])) &&
           std::isfinite(center_[i]) && std::isfinite(slack_[i]);
  }

  /// What judge_element() does, many elements at a time; false, and nothing done, where one of them is not finite or
  /// beyond its bound: nearly all rows are sound.
  bool judge_sound_row(std::size_t begin, std::size_t width, RowSums& row, BoundedRows& found) const {
    thread_local Eigen::ArrayXd candidate;
    thread_local Eigen::ArrayXd center;
    thread_local Eigen::ArrayXd reference;
    thread_local Eigen::ArrayXd slack;
    thread_local Eigen::ArrayXd unit;
    thread_local Eigen::ArrayXd error;
    thread_local Eigen::ArrayXd ratio;
    const auto n = static_cast<Eigen::Index>(width);
    for (Eigen::ArrayXd* array : {&candidate, &center, &reference, &slack, &unit}) {
      array->resize(n);
    }
    for (std::size_t i = 0; i < width; ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      candidate[at] = value_of(candidate_[begin + i]);
      reference[at] = value_of(reference_[begin + i]);
      center[at] = center_[begin + i];
      slack[at] = slack_[begin + i];
      unit[at] = unit_at<T>(candidate[at]);
    }
    // A number less itself is 0; an infinity or NaN is NaN then, and so is every sum with it.
    const double zero = (candidate - candidate + reference - reference + center - center + slack - slack).sum();
    if (zero != 0) {
      return false;
    }
    error = candidate - center;
    ratio = error.abs() / (unit / 2 + slack);
    const double worst = ratio.maxCoeff();
    if (!(worst <= 1)) {
      return false;
    }
    found.max_abs = std::max(found.max_abs, error.abs().maxCoeff());
    found.max_ulp = std::max(found.max_ulp, (error.abs() / unit).maxCoeff());
    if (found.worst == kNoElement || worst > found.bound_ratio) {
      const auto at = std::find(ratio.data(), ratio.data() + n, worst);
      found.bound_ratio = worst;
      found.worst = begin + static_cast<std::size_t>(at - ratio.data());
    }
    row.squares = error.square().sum();
    row.sum = error.sum();
    row.unit_squares = row.signed_unit_squares = unit.square().sum();
    row.unit_fourths = unit.square().square().sum();
    row.slack = slack.sum();
    row.slack_squares = slack.square().sum();
    row.count = static_cast<std::int64_t>(width);
    return true;
  }

  void judge_element(std::size_t i, RowSums& row, BoundedRows& found) const {
    const double y = center_[i];
    const double c = value_of(candidate_[i]);
    const double r = value_of(reference_[i]);
    if (!std::isfinite(r) || !std::isfinite(c)) {  // counted by the exact comparison
      if (!same_value(r, c)) {
        add_bad(i, found);
      }
      return;
    }
    const double unit = unit_at<T>(c);
    const double slack = slack_[i];
    const bool bounded = std::isfinite(slack) && std::isfinite(y);
    const double d = bounded ? std::fabs(c - y) : std::fabs(c - r);
    const double allowed = bounded ? unit / 2 + slack : 0;
    found.max_abs = std::max(found.max_abs, d);
    if (d > found.max_ulp * unit) {  // divided only where it counts: this runs for every element
      found.max_ulp = d / unit;
    }
    if (d > allowed) {
      ++found.violations;
      add_bad(i, found);
    }
    if (found.worst == kNoElement || d > found.bound_ratio * allowed) {
      found.bound_ratio = d == 0 ? 0 : (allowed > 0 ? d / allowed : kInfinity);
      found.worst = i;
    }
    if (!bounded) {
      return;
    }
    row.squares += d * d;
    row.sum += c - y;
    row.unit_squares += unit * unit;
    row.signed_unit_squares += unit * unit;
    row.unit_fourths += unit * unit * unit * unit;
    row.slack += slack;
    row.slack_squares += slack * slack;
    ++row.count;
  }

  static void add_bad(std::size_t i, BoundedRows& found) {
    if (found.bad.size() < found.room) {
      found.bad.push_back(static_cast<std::int64_t>(i));
    }
  }

  void decide(BoundedRows found) {
    result_.violations = result_.nonfinite_mismatches + found.violations;
    result_.bad = std::move(found.bad);
    result_.bound_ratio = found.bound_ratio;
    result_.max_abs = found.max_abs;
    result_.max_ulp = found.max_ulp;
    if (result_.nonfinite_mismatches == 0 && found.worst != kNoElement) {
      const auto flat = static_cast<std::int64_t>(found.worst);
      result_.worst = compared_element(reference_tensor_, candidate_tensor_, flat);
    } else if (result_.nonfinite_mismatches > 0) {
      result_.bound_ratio = kInfinity;
    }
    std::vector<std::string> faults;
    if (result_.nonfinite_mismatches > 0) {
      faults.push_back(fmt::format("{} of {} elements are NaN or infinite on one side and not the same on the other",
                                   result_.nonfinite_mismatches, result_.count));
    }
    if (const std::int64_t beyond = result_.violations - result_.nonfinite_mismatches; beyond > 0) {
      faults.push_back(fmt::format("{} of {} elements beyond their bound, the worst {:.3g} times it", beyond,
                                   result_.count, *result_.bound_ratio));
    }
    if (found.noisy > 0) {
      faults.push_back(fmt::format("{} rows err more than one rounding does, the worst {:.3g} times its limit",
                                   found.noisy, found.worst_noise));
    }
    if (found.biased > 0) {
      faults.push_back(
          fmt::format("{} rows err to one side, the worst {:.3g} times its limit", found.biased, found.worst_bias));
    }
    if (!faults.empty()) {
      result_.verdict = Verdict::fail;
      result_.reason = fmt::format("{}", fmt::join(faults, "; "));
    } else if (result_.verdict != Verdict::degenerate) {
      result_.verdict = Verdict::pass;
      result_.reason = fmt::format("within its bound, at most {:.3g} of it; {} of {} elements rounded to a neighbour",
                                   *result_.bound_ratio, result_.mismatches, result_.count);
    }
  }

  Shape shape_;
  const Tensor& reference_tensor_;
  const Tensor& candidate_tensor_;
  std::span<const T> reference_;
  std::span<const float> center_;
  std::span<const float> slack_;
  std::span<const float> moves_;  ///< by row, or none
  std::span<const T> candidate_;
  Comparison result_;
};

}  // namespace

Comparison compare_bounded(const StageInfo& stage, const Tensor& reference, const Tensor* unrounded,
                           const StageSlack& slack, const Tensor& candidate, reference::ThreadPool& pool) {
  // The exact comparison settles absence, form, non-finite elements and constants; its verdict on values is not used.
  Comparison exact = compare(stage, &reference, &candidate, StageTolerance{}, {}, &pool);
  const bool comparable = exact.counted && exact.worst.has_value();
  if (!comparable) {
    return exact;
  }
  if (stage.dtype == DType::bf16) {
    std::optional<Tensor> converted;
    const Tensor& center = unrounded != nullptr ? *unrounded : converted.emplace(to_f32(reference));
    return BoundedJudge<Bf16>(reference, center, slack, candidate).run(std::move(exact), pool);
  }
  const Tensor& center = unrounded != nullptr ? *unrounded : reference;
  return BoundedJudge<float>(reference, center, slack, candidate).run(std::move(exact), pool);
}

std::string bounded_text(const StageInfo& stage, std::int64_t terms) {
  std::string text =
      fmt::format("|candidate - unrounded| <= half a {} unit + derived slack; row rms and bias of one rounding",
                  name_of(stage.dtype));
  if (terms > 0) {
    const double rounded = static_cast<double>(terms) * 0x1p-24;
    text += fmt::format(" (not used: worst case gamma_{} = {:.2g} of |w||x|)", terms, rounded / (1 - rounded));
  }
  return text;
}

}  // namespace attndiff
