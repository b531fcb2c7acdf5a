#include "harness/compare/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "harness/compare/row_bounds.h"
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
    constexpr int kExtraFractionBits = 16;  // float32 is bfloat16 with 16 more fraction bits
    return std::ldexp(bf16_unit(v), -kExtraFractionBits);
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
  bool differs = false;
};

/// Two tensors of one element type and shape.
template <typename T>
class Judge {
 public:
  Judge(const StageInfo& stage, const Tensor& reference, const Tensor& candidate, const StageTolerance& tolerance,
        std::span<const double> upstream)
      : stage_(stage),
        tolerance_(tolerance),
        shape_(reference.shape()),
        reference_(reference.as<T>()),
        candidate_(candidate.as<T>()),
        width_(shape_.rank() == 0 ? 1 : static_cast<std::size_t>(shape_[shape_.rank() - 1])) {
    result_.counted = true;
    result_.count = reference.count();
    result_.allowed_differences = has_count_limit()
                                      ? tolerance_.allowed_differences(result_.count) + explained_differences(upstream)
                                      : result_.count;
    if (tolerance_.kind != ToleranceKind::exact) {
      result_.bound_ratio = 0;
    }
  }

  Comparison run() {
    for (std::size_t begin = 0; begin < reference_.size(); begin += width_) {
      const RowScan scan = scan_row(begin);
      reference_square_sum_ += scan.square_sum;
      if (scan.differs) {
        judge_row(begin, scan);
      }
    }
    finish();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool has_count_limit() const noexcept {
    return tolerance_.kind == ToleranceKind::bf16 || tolerance_.kind == ToleranceKind::quantised;
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

  RowScan scan_row(std::size_t begin) {
    RowScan scan;
    const double first_reference = value_of(reference_.front());
    const double first_candidate = value_of(candidate_.front());
    for (std::size_t i = begin; i < begin + width_; ++i) {
      const double r = value_of(reference_[i]);
      const double c = value_of(candidate_[i]);
      if (std::isfinite(r)) {
        scan.square_sum += r * r;
        ++scan.finite;
      } else if (std::isnan(r) && std::isnan(c)) {
        ++result_.both_nan;
      }
      scan.differs = scan.differs || !same_value(r, c);
      reference_constant_ = reference_constant_ && same_value(r, first_reference);
      candidate_constant_ = candidate_constant_ && same_value(c, first_candidate);
    }
    return scan;
  }

  void judge_row(std::size_t begin, const RowScan& scan) {
    row_reference_.resize(width_);
    row_candidate_.resize(width_);
    allowed_.resize(width_);
    for (std::size_t i = 0; i < width_; ++i) {
      row_reference_[i] = value_of(reference_[begin + i]);
      row_candidate_[i] = value_of(candidate_[begin + i]);
    }
    const double rms = scan.finite > 0 ? std::sqrt(scan.square_sum / static_cast<double>(scan.finite)) : 0;
    result_.judged_differences -= row_bounds(stage_, tolerance_, {row_reference_, row_candidate_, rms}, allowed_);
    double judged = 0;
    for (std::size_t i = 0; i < width_; ++i) {
      if (!same_value(row_reference_[i], row_candidate_[i])) {
        const double d = judge_element(begin + i, row_reference_[i], row_candidate_[i], allowed_[i]);
        if (d > 0 && d <= kCancellation * rms) {
          --result_.judged_differences;
        }
        difference_square_sum_ += d * d;
        // What the tolerance's absolute part allows is no relative error of a row near zero.
        judged += std::pow(std::max(0.0, d - tolerance_.absolute), 2);
      }
    }
    judge_row_error(begin, judged, scan.square_sum);
  }

  /// Returns the difference's size, 0 where it is not finite. Counts it.
  double judge_element(std::size_t flat, double reference, double candidate, double allowed) {
    ++result_.mismatches;
    ++result_.judged_differences;
    if (!std::isfinite(reference) || !std::isfinite(candidate)) {
      add_violation(flat);
      if (result_.nonfinite_mismatches++ == 0) {
        worst_flat_ = flat;
      }
      return 0;
    }
    const double d = std::fabs(candidate - reference);
    const double ratio = allowed > 0 ? d / allowed : kInfinity;
    result_.max_abs = std::max(result_.max_abs, d);
    result_.max_ulp = std::max(result_.max_ulp, d / unit_at<T>(reference));
    if (d > allowed) {
      add_violation(flat);
    }
    // Where ratios tie, as they all do at infinity for exact tolerances, the larger difference is the worse one.
    const bool worse = ratio > worst_ratio_ || (ratio == worst_ratio_ && d > worst_difference_);
    if (result_.nonfinite_mismatches == 0 && worse) {
      worst_flat_ = flat;
      worst_ratio_ = ratio;
      worst_difference_ = d;
    }
    return d;
  }

  void add_violation(std::size_t flat) {
    ++result_.violations;
    if (result_.bad.size() < kMostBad) {
      result_.bad.push_back(static_cast<std::int64_t>(flat));
    }
  }

  void judge_row_error(std::size_t begin, double difference_square_sum, double reference_square_sum) {
    if (tolerance_.kind == ToleranceKind::exact || reference_square_sum == 0) {
      return;
    }
    const double rel_l2 = std::sqrt(difference_square_sum / reference_square_sum);
    if (rel_l2 > tolerance_.row_rel_l2) {
      ++rows_beyond_;
    }
    if (!result_.worst_row.has_value() || rel_l2 > result_.worst_row->rel_l2) {
      const std::size_t axes = shape_.rank() == 0 ? 0 : shape_.rank() - 1;
      result_.worst_row = ComparedRow{index_of(shape_, static_cast<std::int64_t>(begin), axes), rel_l2};
    }
  }

  void finish() {
    const bool nonfinite = result_.nonfinite_mismatches > 0;
    if (nonfinite) {
      result_.max_abs = result_.max_ulp = result_.rel_l2 = kInfinity;
    } else if (difference_square_sum_ > 0) {
      result_.rel_l2 =
          reference_square_sum_ > 0 ? std::sqrt(difference_square_sum_ / reference_square_sum_) : kInfinity;
    }
    if (result_.bound_ratio.has_value()) {
      result_.bound_ratio = nonfinite ? kInfinity : worst_ratio_;
    }
    record_worst();
    decide();
  }

  void record_worst() {
    result_.worst = element<T>(shape_, reference_, candidate_, static_cast<std::int64_t>(worst_flat_));
  }

  void decide() {
    const std::vector<std::string> faults = found_faults();
    if (!faults.empty()) {
      result_.verdict = Verdict::fail;
      result_.reason = fmt::format("{}", fmt::join(faults, "; "));
    } else if (degenerate()) {
      result_.verdict = Verdict::degenerate;
      result_.reason = fmt::format("all {} elements of the {} are {:g}: agreement on a constant shows nothing",
                                   result_.count, reference_constant_ ? "reference" : "candidate",
                                   reference_constant_ ? value_of(reference_.front()) : value_of(candidate_.front()));
    } else if (result_.mismatches == 0) {
      result_.reason = "equal";
    } else {
      result_.reason = fmt::format("{} of {} elements differ, within tolerance", result_.mismatches, result_.count);
    }
  }

  [[nodiscard]] bool degenerate() const noexcept {
    return kIsFloat<T> && result_.count >= kDegenerateCount && (reference_constant_ || candidate_constant_);
  }
  [[nodiscard]] std::vector<std::string> found_faults() const {
    std::vector<std::string> faults;
    if (result_.nonfinite_mismatches > 0) {
      faults.push_back(fmt::format("{} of {} elements are NaN or infinite on one side and not the same on the other",
                                   result_.nonfinite_mismatches, result_.count));
    }
    const std::int64_t finite_violations = result_.violations - result_.nonfinite_mismatches;
    if (finite_violations > 0 && tolerance_.kind == ToleranceKind::exact) {
      faults.push_back(fmt::format("{} of {} elements differ, none may", finite_violations, result_.count));
    } else if (finite_violations > 0) {
      faults.push_back(fmt::format("{} of {} elements beyond their bound, the worst finite one {:.3g} times it",
                                   finite_violations, result_.count, worst_ratio_));
    }
    if (rows_beyond_ > 0) {
      faults.push_back(fmt::format("{} rows beyond relative L2 {:g}, the worst {} with {:.3g}", rows_beyond_,
                                   tolerance_.row_rel_l2, text_of(result_.worst_row->index),
                                   result_.worst_row->rel_l2));
    }
    if (result_.judged_differences > result_.allowed_differences) {
      faults.push_back(fmt::format("{} of {} elements differ, {} may", result_.judged_differences, result_.count,
                                   result_.allowed_differences));
    }
    return faults;
  }

  const StageInfo& stage_;
  const StageTolerance& tolerance_;
  Shape shape_;
  std::span<const T> reference_;
  std::span<const T> candidate_;
  std::size_t width_;

  Comparison result_;
  std::vector<double> row_reference_;
  std::vector<double> row_candidate_;
  std::vector<double> allowed_;
  double reference_square_sum_ = 0;
  double difference_square_sum_ = 0;
  std::int64_t rows_beyond_ = 0;
  std::size_t worst_flat_ = 0;
  double worst_ratio_ = 0;
  double worst_difference_ = 0;
  bool reference_constant_ = true;
  bool candidate_constant_ = true;
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
                   const StageTolerance& tolerance, std::span<const double> upstream) {
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
    return Judge<decltype(type)>(stage, *reference, *candidate, tolerance, upstream).run();
  });
}

ComparedElement compared_element(const Tensor& reference, const Tensor& candidate, std::int64_t flat) {
  return with_type(reference.dtype(), [&](auto type) {
    using T = decltype(type);
    return element<T>(reference.shape(), reference.as<T>(), candidate.as<T>(), flat);
  });
}

}  // namespace attndiff
