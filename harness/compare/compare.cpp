#include "harness/compare/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "harness/compare/row_bounds.h"
#include "harness/compare/row_parts.h"
#include "reference/contract/bfloat16.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double value_of(Bf16 v) noexcept { return to_float(v); }
double value_of(float v) noexcept { return v; }
double value_of(std::int32_t v) noexcept { return v; }
double value_of(std::uint8_t v) noexcept { return v; }

std::string bits_of(Bf16 v) { return fmt::format("{:04x}", v.bits); }
std::string bits_of(float v) { return fmt::format("{:08x}", std::bit_cast<std::uint32_t>(v)); }
std::string bits_of(std::int32_t v) { return fmt::format("{:08x}", static_cast<std::uint32_t>(v)); }
std::string bits_of(std::uint8_t v) { return fmt::format("{:02x}", v); }

/// One unit in the last place of an element type at the magnitude of `v`; integers are 1 apart.
template <typename T>
double unit_at(double v) noexcept {
  if constexpr (std::is_same_v<T, Bf16>) {
    return bf16_unit(v);
  } else if constexpr (std::is_same_v<T, float>) {
    return f32_unit(v);
  } else {
    return 1;
  }
}

template <typename T>
constexpr bool kIsFloat = std::is_same_v<T, Bf16> || std::is_same_v<T, float>;

std::vector<std::int64_t> index_of(const Shape& shape, std::int64_t flat, std::size_t axes) {
  const Shape strides = shape.strides();
  std::vector<std::int64_t> index;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    index.push_back(flat / strides[axis]);
    flat %= strides[axis];
  }
  return index;
}

std::string text_of(const std::vector<std::int64_t>& index) { return fmt::format("[{}]", fmt::join(index, ", ")); }

template <typename T>
ComparedElement element(const Shape& shape, std::span<const T> reference, std::span<const T> candidate,
                        std::int64_t flat) {
  const T r = reference[static_cast<std::size_t>(flat)];
  const T c = candidate[static_cast<std::size_t>(flat)];
  return {.flat = flat,
          .index = index_of(shape, flat, shape.rank()),
          .reference = value_of(r),
          .candidate = value_of(c),
          .reference_bits = bits_of(r),
          .candidate_bits = bits_of(c)};
}

/// Calls `use` with a value of the element type.
template <typename Use>
auto with_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::bf16:
      return use(Bf16{});
    case DType::f32:
      return use(float{});
    case DType::i32:
      return use(std::int32_t{});
    case DType::u8:
      return use(std::uint8_t{});
    case DType::e4m3:
      break;
  }
  throw Error(ErrorKind::internal, fmt::format("{} elements cannot be compared", name_of(dtype)));
}

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
struct Pair {
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
  explicit RowJudge(const Pair<T>& pair)
      : pair_(pair), row_reference_(pair.width), row_candidate_(pair.width), allowed_(pair.width) {}

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
    const auto is_finite = (values - values) == 0;
    RowScan scan{.square_sum = is_finite.select(values.square(), 0.0).sum(),
                 .finite = is_finite.count(),
                 .differs = std::memcmp(reference.data(), candidate.data(), reference.size_bytes()) != 0};
    for (std::size_t i = 0; scan.finite < static_cast<std::int64_t>(pair_.width) && i < pair_.width; ++i) {
      found_.both_nan += std::isnan(row_reference_[i]) && std::isnan(value_of(candidate[i])) ? 1 : 0;
    }
    found_.reference_constant = found_.reference_constant && all_are(reference, pair_.reference.front());
    found_.candidate_constant = found_.candidate_constant && all_are(candidate, pair_.candidate.front());
    return scan;
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
    judge_row_error(begin, judged, scan.square_sum);
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
    if (found_.bad.size() < kMostBad) {
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

  const Pair<T>& pair_;
  RowsFound found_;
  std::vector<double> row_reference_;
  std::vector<double> row_candidate_;
  std::vector<double> allowed_;
};

/// Two tensors of one element type and shape.
template <typename T>
class Judge {
 public:
  Judge(const StageInfo& stage, const Tensor& reference, const Tensor& candidate, const StageTolerance& tolerance,
        std::span<const double> upstream)
      : shape_(reference.shape()),
        pair_{.stage = stage,
              .tolerance = tolerance,
              .reference = reference.as<T>(),
              .candidate = candidate.as<T>(),
              .width = shape_.rank() == 0 ? 1 : static_cast<std::size_t>(shape_[shape_.rank() - 1])} {
    result_.counted = true;
    result_.count = reference.count();
    result_.allowed_differences = has_count_limit()
                                      ? tolerance.allowed_differences(result_.count) + explained_differences(upstream)
                                      : result_.count;
  }

  /// `pool` may be null.
  Comparison run(reference::ThreadPool* pool) {
    const RowParts parts(result_.count / static_cast<std::int64_t>(pair_.width));
    std::vector<RowsFound> found(parts.count());
    parts.run(pool, [&](std::size_t part, std::int64_t first, std::int64_t last) {
      RowJudge<T> rows(pair_);
      for (std::int64_t row = first; row < last; ++row) {
        rows.judge(static_cast<std::size_t>(row) * pair_.width);
      }
      found[part] = rows.take();
    });
    for (const RowsFound& part : found) {
      found_.append(part);
    }
    finish();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool has_count_limit() const noexcept {
    return pair_.tolerance.kind == ToleranceKind::bf16 || pair_.tolerance.kind == ToleranceKind::quantised;
  }

  /// Differing elements that the differences of the stage's inputs explain.
  [[nodiscard]] std::int64_t explained_differences(std::span<const double> upstream) const noexcept {
    double explained = 0;
    for (const double difference : upstream) {
      explained += static_cast<double>(result_.count) / static_cast<double>(upstream.size()) *
                   std::min(1.0, kFlipsPerDifference * difference);
    }
    return static_cast<std::int64_t>(explained);
  }

  void finish() {
    result_.mismatches = found_.mismatches;
    result_.judged_differences = found_.judged_differences;
    result_.violations = found_.violations;
    result_.nonfinite_mismatches = found_.nonfinite_mismatches;
    result_.both_nan = found_.both_nan;
    result_.bad = std::move(found_.bad);
    result_.max_abs = found_.max_abs;
    result_.max_ulp = found_.max_ulp;
    const bool nonfinite = found_.nonfinite_mismatches > 0;
    if (nonfinite) {
      result_.max_abs = result_.max_ulp = result_.rel_l2 = kInfinity;
    } else if (found_.difference_square_sum > 0) {
      result_.rel_l2 = found_.reference_square_sum > 0
                           ? std::sqrt(found_.difference_square_sum / found_.reference_square_sum)
                           : kInfinity;
    }
    if (pair_.tolerance.kind != ToleranceKind::exact) {
      result_.bound_ratio = nonfinite ? kInfinity : found_.worst_ratio;
    }
    if (found_.worst_row) {
      const std::size_t axes = shape_.rank() == 0 ? 0 : shape_.rank() - 1;
      result_.worst_row = ComparedRow{index_of(shape_, static_cast<std::int64_t>(found_.worst_row->begin), axes),
                                      found_.worst_row->rel_l2};
    }
    result_.worst = element<T>(shape_, pair_.reference, pair_.candidate, static_cast<std::int64_t>(found_.worst));
    decide();
  }

  void decide() {
    const std::vector<std::string> faults = found_faults();
    if (!faults.empty()) {
      result_.verdict = Verdict::fail;
      result_.reason = fmt::format("{}", fmt::join(faults, "; "));
    } else if (degenerate()) {
      const bool reference = found_.reference_constant;
      result_.verdict = Verdict::degenerate;
      result_.reason = fmt::format("all {} elements of the {} are {:g}: agreement on a constant shows nothing",
                                   result_.count, reference ? "reference" : "candidate",
                                   value_of(reference ? pair_.reference.front() : pair_.candidate.front()));
    } else if (result_.mismatches == 0) {
      result_.reason = "equal";
    } else {
      result_.reason = fmt::format("{} of {} elements differ, within tolerance", result_.mismatches, result_.count);
    }
  }

  [[nodiscard]] bool degenerate() const noexcept {
    return kIsFloat<T> && result_.count >= kDegenerateCount && (found_.reference_constant || found_.candidate_constant);
  }
  [[nodiscard]] std::vector<std::string> found_faults() const {
    std::vector<std::string> faults;
    if (result_.nonfinite_mismatches > 0) {
      faults.push_back(fmt::format("{} of {} elements are NaN or infinite on one side and not the same on the other",
                                   result_.nonfinite_mismatches, result_.count));
    }
    const std::int64_t finite_violations = result_.violations - result_.nonfinite_mismatches;
    if (finite_violations > 0 && pair_.tolerance.kind == ToleranceKind::exact) {
      faults.push_back(fmt::format("{} of {} elements differ, none may", finite_violations, result_.count));
    } else if (finite_violations > 0) {
      faults.push_back(fmt::format("{} of {} elements beyond their bound, the worst finite one {:.3g} times it",
                                   finite_violations, result_.count, found_.worst_ratio));
    }
    if (found_.rows_beyond > 0) {
      faults.push_back(fmt::format("{} rows beyond relative L2 {:g}, the worst {} with {:.3g}", found_.rows_beyond,
                                   pair_.tolerance.row_rel_l2, text_of(result_.worst_row->index),
                                   result_.worst_row->rel_l2));
    }
    if (result_.judged_differences > result_.allowed_differences) {
      faults.push_back(fmt::format("{} of {} elements differ, {} may", result_.judged_differences, result_.count,
                                   result_.allowed_differences));
    }
    return faults;
  }

  Shape shape_;
  Pair<T> pair_;
  RowsFound found_;
  Comparison result_;
};

bool present(const Tensor* t) noexcept { return t != nullptr && t->defined(); }

Comparison without_elements(Verdict verdict, std::string reason) {
  Comparison c;
  c.verdict = verdict;
  c.reason = std::move(reason);
  return c;
}

std::string described(const Tensor& t) { return fmt::format("{} {}", name_of(t.dtype()), t.shape().text()); }

}  // namespace

Comparison compare(const StageInfo& stage, const Tensor* reference, const Tensor* candidate,
                   const StageTolerance& tolerance, std::span<const double> upstream, reference::ThreadPool* pool) {
  if (!present(reference) && !present(candidate)) {
    return without_elements(Verdict::pass, "neither side has it");
  }
  if (!present(reference) || !present(candidate)) {
    return without_elements(Verdict::missing, fmt::format("the {} has no such tensor, the {} has {}",
                                                          present(reference) ? "candidate" : "reference",
                                                          present(reference) ? "reference" : "candidate",
                                                          described(present(reference) ? *reference : *candidate)));
  }
  const bool typed = reference->dtype() == stage.dtype && candidate->dtype() == stage.dtype;
  if (!typed || !(reference->shape() == candidate->shape())) {
    Comparison c = without_elements(
        Verdict::fail, fmt::format("wrong {}: expected {} {}, found {}{}", typed ? "shape" : "element type",
                                   name_of(stage.dtype), reference->shape().text(), described(*candidate),
                                   reference->dtype() == stage.dtype
                                       ? ""
                                       : fmt::format(" (and {} in the reference)", name_of(reference->dtype()))));
    c.counted = true;
    return c;
  }
  if (reference->count() == 0) {
    return without_elements(Verdict::pass, "no elements on either side");
  }
  return with_type(stage.dtype, [&](auto type) {
    return Judge<decltype(type)>(stage, *reference, *candidate, tolerance, upstream).run(pool);
  });
}

ComparedElement compared_element(const Tensor& reference, const Tensor& candidate, std::int64_t flat) {
  return with_type(reference.dtype(), [&](auto type) {
    using T = decltype(type);
    return element<T>(reference.shape(), reference.as<T>(), candidate.as<T>(), flat);
  });
}

}  // namespace attndiff
