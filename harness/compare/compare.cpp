#include "harness/compare/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "harness/compare/element.h"
#include "harness/compare/row_judge.h"
#include "harness/compare/row_parts.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

std::string bits_of(Bf16 v) { return fmt::format("{:04x}", v.bits); }
std::string bits_of(float v) { return fmt::format("{:08x}", std::bit_cast<std::uint32_t>(v)); }
std::string bits_of(std::int32_t v) { return fmt::format("{:08x}", static_cast<std::uint32_t>(v)); }
std::string bits_of(std::uint8_t v) { return fmt::format("{:02x}", v); }

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
    BadRoom room(parts.count());
    parts.run(pool, [&](std::size_t part, std::int64_t first, std::int64_t last) {
      RowJudge<T> rows(pair_, room.left(part));
      for (std::int64_t row = first; row < last; ++row) {
        rows.judge(static_cast<std::size_t>(row) * pair_.width);
      }
      found[part] = rows.take();
      room.take(part, found[part].bad.size());
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
  TensorPair<T> pair_;
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
