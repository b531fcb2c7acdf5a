#include "harness/compare/detail.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "harness/compare/detail_parts.h"
#include "harness/compare/row_bounds.h"
#include "reference/contract/bfloat16.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr char kNotFinite = '!';

bool is_float(DType dtype) noexcept { return dtype == DType::bf16 || dtype == DType::f32; }

std::string unit_name(DType dtype) {
  return dtype == DType::bf16 ? "bfloat16 unit" : dtype == DType::f32 ? "float32 unit" : "1";
}

double unit_at(DType dtype, double value) noexcept {
  return dtype == DType::bf16 ? bf16_unit(value) : dtype == DType::f32 ? f32_unit(value) : 1.0;
}

/// Class of an error in units: 0 below one, i in [2^(i-1), 2^i).
std::size_t error_class(double units) noexcept {
  return units < 1
             ? 0
             : std::min<std::size_t>(ErrorHistogram::kClasses - 1, static_cast<std::size_t>(std::ilogb(units)) + 1);
}

/// Letter of an error relative to its row: 'a' below 2^-15, 'z' from 2^9.
char error_letter(double relative) noexcept {
  constexpr int kFirstExponent = -16;
  constexpr int kLast = 'z' - 'a';
  if (!(relative > 0)) {
    return 'a';
  }
  const int exponent = std::isinf(relative) ? kLast : std::ilogb(relative) - kFirstExponent;
  return static_cast<char>('a' + std::clamp(exponent, 0, kLast));
}

/// An error's place in the order of the worst elements.
struct Candidate {
  std::int64_t flat = 0;
  bool beyond = false;  ///< beyond its bound
  double relative = 0;  ///< |d| over its row's rms, infinite where one side is not finite

  [[nodiscard]] bool worse_than(const Candidate& other) const noexcept {
    return beyond != other.beyond ? beyond : relative != other.relative ? relative > other.relative : flat < other.flat;
  }
};

class WorstElements {
 public:
  void offer(const Candidate& c) {
    if (kept_.size() == ComparisonDetail::kMostElements && !c.worse_than(kept_.back())) {
      return;
    }
    kept_.insert(
        std::upper_bound(kept_.begin(), kept_.end(), c, [](const auto& a, const auto& b) { return a.worse_than(b); }),
        c);
    if (kept_.size() > ComparisonDetail::kMostElements) {
      kept_.pop_back();
    }
  }

  /// In their order, but `first`, where there is one, before all.
  [[nodiscard]] std::vector<std::int64_t> positions(const std::optional<ComparedElement>& first) const {
    std::vector<std::int64_t> positions;
    if (first.has_value()) {
      positions.push_back(first->flat);
    }
    for (const Candidate& c : kept_) {
      if (positions.size() < ComparisonDetail::kMostElements && (!first.has_value() || c.flat != first->flat)) {
        positions.push_back(c.flat);
      }
    }
    return positions;
  }

 private:
  std::vector<Candidate> kept_;
};

/// One pass over two tensors of one shape and type.
class Examination {
 public:
  Examination(const Tensor& reference, const Tensor& candidate, const Comparison& result,
              std::span<const std::string> axes)
      : reference_(reference), candidate_(candidate), bad_(result.bad) {
    const auto extents = reference.shape().extents();
    detail_.shape.assign(extents.begin(), extents.end());
    detail_.axes.assign(axes.begin(), axes.end());
    detail_.histogram.unit = unit_name(reference.dtype());
    detail_.histogram.below.assign(ErrorHistogram::kClasses, 0);
    detail_.histogram.above.assign(ErrorHistogram::kClasses, 0);
    maps_ = heat_maps(reference.shape(), axes);
  }

  ComparisonDetail run(const Comparison& result) {
    const Shape& shape = reference_.shape();
    const std::size_t width = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
    std::vector<double> ours(width);
    std::vector<double> theirs(width);
    for (std::int64_t begin = 0; begin < reference_.count(); begin += static_cast<std::int64_t>(width)) {
      if (same_bits(begin, width)) {
        detail_.histogram.equal += static_cast<std::int64_t>(width);
        continue;
      }
      read_row(reference_, begin, ours);
      read_row(candidate_, begin, theirs);
      examine_row(begin, ours, theirs);
    }
    for (HeatMapBuilder& map : maps_) {
      detail_.maps.push_back(std::move(map).take());
    }
    for (const std::int64_t flat : worst_.positions(result.worst)) {
      detail_.worst.push_back(compared_element(reference_, candidate_, flat));
    }
    return std::move(detail_);
  }

 private:
  /// Most rows, in a comparison worth a look.
  [[nodiscard]] bool same_bits(std::int64_t begin, std::size_t width) const noexcept {
    const std::size_t size = size_of(reference_.dtype());
    const std::size_t offset = static_cast<std::size_t>(begin) * size;
    return std::memcmp(reference_.raw() + offset, candidate_.raw() + offset, width * size) == 0;
  }

  void examine_row(std::int64_t begin, std::span<const double> ours, std::span<const double> theirs) {
    find_differing(begin, ours.size());
    std::int64_t errors = 0;
    double scale = 0;  // computed when the row's first difference is found
    for (const std::size_t i : differing_) {
      if (same_value(ours[i], theirs[i])) {
        continue;  // zeros of both signs, or NaN of other bits
      }
      scale = scale > 0 ? scale : scale_of(ours);
      examine_element(begin + static_cast<std::int64_t>(i), ours[i], theirs[i], scale);
      ++errors;
    }
    detail_.histogram.equal += static_cast<std::int64_t>(ours.size()) - errors;
  }

  /// Elements of a row whose bits differ: a few in a thousand, in a comparison worth a look.
  void find_differing(std::int64_t begin, std::size_t width) {
    differing_.clear();
    const auto find = [&](auto bits) {
      using Bits = decltype(bits);
      const auto* ours = reinterpret_cast<const Bits*>(reference_.raw()) + begin;
      const auto* theirs = reinterpret_cast<const Bits*>(candidate_.raw()) + begin;
      for (std::size_t i = 0; i < width; ++i) {
        if (ours[i] != theirs[i]) {
          differing_.push_back(i);
        }
      }
    };
    switch (size_of(reference_.dtype())) {
      case sizeof(std::uint8_t):
        return find(std::uint8_t{});
      case sizeof(std::uint16_t):
        return find(std::uint16_t{});
      default:
        return find(std::uint32_t{});
    }
  }

  /// What an error is held against: the row's rms over its finite elements, the smallest double for a row of zeros.
  [[nodiscard]] double scale_of(std::span<const double> row) const noexcept {
    if (!is_float(reference_.dtype())) {
      return 1;
    }
    const Eigen::Map<const Eigen::ArrayXd> values(row.data(), static_cast<Eigen::Index>(row.size()));
    const auto is_finite = (values - values) == 0;
    const double squares = is_finite.select(values.square(), 0.0).sum();
    const auto finite = static_cast<double>(is_finite.count());
    return squares > 0 ? std::sqrt(squares / finite) : std::numeric_limits<double>::min();
  }

  void examine_element(std::int64_t flat, double ours, double theirs, double scale) {
    const bool finite = std::isfinite(ours) && std::isfinite(theirs);
    const double d = theirs - ours;
    const Candidate c{.flat = flat, .beyond = is_beyond(flat), .relative = finite ? std::fabs(d) / scale : kInfinity};
    worst_.offer(c);
    if (!finite) {
      ++detail_.histogram.nonfinite;
    } else {
      auto& side = d < 0 ? detail_.histogram.below : detail_.histogram.above;
      ++side[error_class(std::fabs(d) / unit_at(reference_.dtype(), ours))];
    }
    const char letter = finite ? error_letter(c.relative) : kNotFinite;
    for (HeatMapBuilder& map : maps_) {
      map.add(flat, letter, c.beyond);
    }
  }

  /// Violations come in ascending order, as elements do.
  bool is_beyond(std::int64_t flat) noexcept {
    while (next_bad_ < bad_.size() && bad_[next_bad_] < flat) {
      ++next_bad_;
    }
    return next_bad_ < bad_.size() && bad_[next_bad_] == flat;
  }

  const Tensor& reference_;
  const Tensor& candidate_;
  std::span<const std::int64_t> bad_;
  std::size_t next_bad_ = 0;
  std::vector<std::size_t> differing_;  ///< in the row at hand
  std::vector<HeatMapBuilder> maps_;
  WorstElements worst_;
  ComparisonDetail detail_;
};

}  // namespace

void read_row(const Tensor& tensor, std::int64_t begin, std::span<double> row) {
  const auto copy = [&](auto values, auto convert) {
    std::transform(values.begin() + begin, values.begin() + begin + static_cast<std::int64_t>(row.size()), row.begin(),
                   convert);
  };
  const auto plain = [](auto v) { return static_cast<double>(v); };
  switch (tensor.dtype()) {
    case DType::bf16:
      return copy(tensor.as<Bf16>(), [](Bf16 v) { return static_cast<double>(to_float(v)); });
    case DType::f32:
      return copy(tensor.as<float>(), plain);
    case DType::i32:
      return copy(tensor.as<std::int32_t>(), plain);
    case DType::u8:
      return copy(tensor.as<std::uint8_t>(), plain);
    case DType::e4m3:
      break;
  }
  throw Error(ErrorKind::internal, fmt::format("{} elements cannot be compared", name_of(tensor.dtype())));
}

std::optional<ComparisonDetail> detail_of(const StageInfo& stage, std::span<const std::string> axes,
                                          const Tensor& reference, const Tensor& candidate, const Comparison& result,
                                          const ChoiceScores& scores) {
  if (!(reference.shape() == candidate.shape()) || reference.dtype() != candidate.dtype() || reference.count() == 0) {
    return std::nullopt;
  }
  ComparisonDetail detail = Examination(reference, candidate, result, axes).run(result);
  if (stage.kind == StageKind::index || stage.kind == StageKind::mask) {
    add_disputes(stage.kind, reference, candidate, scores, detail);
  }
  return detail;
}

}  // namespace attndiff
