#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "harness/compare/compare.h"
#include "harness/compare/element.h"
#include "harness/compare/row_bounds.h"
#include "harness/compare/tolerance.h"
#include "reference/contract/stage.h"

namespace attndiff {

/// What one pass over a row tells without looking at single differences.
struct RowScan {
  double square_sum = 0;  ///< of the reference's finite elements
  std::int64_t finite = 0;
  bool differs = false;  ///< in its bits
};

/// A row of a tensor by its first element.
struct RowError {
  std::size_t begin = 0;
  double rel_l2 = 0;
};

/// What the judgement of some rows found.
struct RowsFound {
  std::int64_t mismatches = 0;
  std::int64_t judged_differences = 0;
  std::int64_t violations = 0;
  std::int64_t nonfinite_mismatches = 0;
  std::int64_t both_nan = 0;
  std::int64_t rows_beyond = 0;
  double max_abs = 0;
  double max_ulp = 0;
  double reference_square_sum = 0;
  double difference_square_sum = 0;
  std::size_t worst = 0;  ///< element 0 where all are equal
  double worst_ratio = 0;
  double worst_difference = 0;
  std::optional<RowError> worst_row;
  std::vector<std::int64_t> bad;
  bool reference_constant = true;
  bool candidate_constant = true;

  /// Where ratios tie, as they all do at infinity for exact tolerances, the larger difference is the worse one.
  [[nodiscard]] bool worse(double ratio, double difference) const noexcept {
    return ratio > worst_ratio || (ratio == worst_ratio && difference > worst_difference);
  }

  /// Takes in what the rows after these found.
  void append(const RowsFound& after) {
    const bool first_nonfinite = nonfinite_mismatches == 0 && after.nonfinite_mismatches > 0;
    const bool finite_and_worse = nonfinite_mismatches == 0 && worse(after.worst_ratio, after.worst_difference);
    if (first_nonfinite || finite_and_worse) {
      worst = after.worst;
    }
    if (worse(after.worst_ratio, after.worst_difference)) {
      worst_ratio = after.worst_ratio;
      worst_difference = after.worst_difference;
    }
    mismatches += after.mismatches;
    judged_differences += after.judged_differences;
    violations += after.violations;
    nonfinite_mismatches += after.nonfinite_mismatches;
    both_nan += after.both_nan;
    rows_beyond += after.rows_beyond;
    max_abs = std::max(max_abs, after.max_abs);
    max_ulp = std::max(max_ulp, after.max_ulp);
    reference_square_sum += after.reference_square_sum;
    difference_square_sum += after.difference_square_sum;
    if (after.worst_row && (!worst_row || after.worst_row->rel_l2 > worst_row->rel_l2)) {
      worst_row = after.worst_row;
    }
    const std::size_t room = std::min(kMostBad - bad.size(), after.bad.size());
    bad.insert(bad.end(), after.bad.begin(), after.bad.begin() + static_cast<std::ptrdiff_t>(room));
    reference_constant = reference_constant && after.reference_constant;
    candidate_constant = candidate_constant && after.candidate_constant;
  }
};

/// Both sides of a comparison of one element type.
template <typename T>
struct TensorPair {
  const StageInfo& stage;
  const StageTolerance& tolerance;
  std::span<const T> reference;
  std::span<const T> candidate;
  std::size_t width = 1;  ///< of a row
};

/// Judges rows one after the other.
template <typename T>
class RowJudge {
 public:
  /// Keeps the positions of at most `room` violations.
  RowJudge(const TensorPair<T>& pair, std::size_t room)
      : pair_(pair), room_(room), row_reference_(pair.width), row_candidate_(pair.width), allowed_(pair.width) {}

  void judge(std::size_t begin) {
    const RowScan scan = scan_row(begin);
    found_.reference_square_sum += scan.square_sum;
    if (scan.differs) {
      judge_differing(begin, scan);
    }
  }

  [[nodiscard]] RowsFound take() { return std::move(found_); }

 private:
  RowScan scan_row(std::size_t begin) {
    const auto reference = pair_.reference.subspan(begin, pair_.width);
    const auto candidate = pair_.candidate.subspan(begin, pair_.width);
    read(reference, row_reference_);
    const Eigen::Map<const Eigen::ArrayXd> values(row_reference_.data(), static_cast<Eigen::Index>(pair_.width));
    RowScan scan{.square_sum = values.square().sum(),
                 .finite = static_cast<std::int64_t>(pair_.width),
                 .differs = std::memcmp(reference.data(), candidate.data(), reference.size_bytes()) != 0};
    if (!std::isfinite(scan.square_sum)) {  // the squares of float32 values never overflow in double
      leave_out_nonfinite(candidate, scan);
    }
    found_.reference_constant = found_.reference_constant && all_are(reference, pair_.reference.front());
    found_.candidate_constant = found_.candidate_constant && all_are(candidate, pair_.candidate.front());
    return scan;
  }

  void leave_out_nonfinite(std::span<const T> candidate, RowScan& scan) {
    scan.square_sum = 0;
    scan.finite = 0;
    for (std::size_t i = 0; i < pair_.width; ++i) {
      const double v = row_reference_[i];
      scan.square_sum += std::isfinite(v) ? v * v : 0;
      scan.finite += std::isfinite(v) ? 1 : 0;
      found_.both_nan += std::isnan(v) && std::isnan(value_of(candidate[i])) ? 1 : 0;
    }
  }

  static void read(std::span<const T> row, std::vector<double>& values) {
    std::transform(row.begin(), row.end(), values.begin(), [](T v) { return value_of(v); });
  }

  static bool all_are(std::span<const T> row, T first) {
    return std::all_of(row.begin(), row.end(), [&](T v) { return same_value(value_of(v), value_of(first)); });
  }

  /// After scan_row(), which has read the reference.
  void judge_differing(std::size_t begin, const RowScan& scan) {
    read(pair_.candidate.subspan(begin, pair_.width), row_candidate_);
    const double rms = scan.finite > 0 ? std::sqrt(scan.square_sum / static_cast<double>(scan.finite)) : 0;
    found_.judged_differences -=
        row_bounds(pair_.stage, pair_.tolerance, {row_reference_, row_candidate_, rms}, allowed_);
    const std::int64_t mismatches_before = found_.mismatches;
    double judged = 0;
    for (std::size_t i = 0; i < pair_.width; ++i) {
      if (!same_value(row_reference_[i], row_candidate_[i])) {
        const double d = judge_element(begin + i, row_reference_[i], row_candidate_[i], allowed_[i]);
        if (d > 0 && d <= kCancellation * rms) {
          --found_.judged_differences;
        }
        found_.difference_square_sum += d * d;
        // What the tolerance's absolute part allows is no relative error of a row near zero.
        judged += std::pow(std::max(0.0, d - pair_.tolerance.absolute), 2);
      }
    }
    if (found_.mismatches > mismatches_before) {  // -0 and +0 are equal and have other bits
      judge_row_error(begin, judged, scan.square_sum);
    }
  }

  /// Returns the difference's size, 0 where it is not finite. Counts it.
  double judge_element(std::size_t flat, double reference, double candidate, double allowed) {
    ++found_.mismatches;
    ++found_.judged_differences;
    if (!std::isfinite(reference) || !std::isfinite(candidate)) {
      add_violation(flat);
      if (found_.nonfinite_mismatches++ == 0) {
        found_.worst = flat;
      }
      return 0;
    }
    const double d = std::fabs(candidate - reference);
    const double ratio = allowed > 0 ? d / allowed : kInfinity;
    found_.max_abs = std::max(found_.max_abs, d);
    found_.max_ulp = std::max(found_.max_ulp, d / unit_at<T>(reference));
    if (d > allowed) {
      add_violation(flat);
    }
    if (found_.nonfinite_mismatches == 0 && found_.worse(ratio, d)) {
      found_.worst = flat;
      found_.worst_ratio = ratio;
      found_.worst_difference = d;
    }
    return d;
  }

  void add_violation(std::size_t flat) {
    ++found_.violations;
    if (found_.bad.size() < room_) {
      found_.bad.push_back(static_cast<std::int64_t>(flat));
    }
  }

  void judge_row_error(std::size_t begin, double difference_square_sum, double reference_square_sum) {
    if (pair_.tolerance.kind == ToleranceKind::exact || reference_square_sum == 0) {
      return;
    }
    const double rel_l2 = std::sqrt(difference_square_sum / reference_square_sum);
    if (rel_l2 > pair_.tolerance.row_rel_l2) {
      ++found_.rows_beyond;
    }
    if (!found_.worst_row || rel_l2 > found_.worst_row->rel_l2) {
      found_.worst_row = RowError{.begin = begin, .rel_l2 = rel_l2};
    }
  }

  const TensorPair<T>& pair_;
  std::size_t room_;
  RowsFound found_;
  std::vector<double> row_reference_;
  std::vector<double> row_candidate_;
  std::vector<double> allowed_;
};

}  // namespace attndiff
