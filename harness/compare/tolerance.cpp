#include "harness/compare/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

using Number = ToleranceNumber;
using Tol = StageTolerance;

constexpr double kAnything = std::numeric_limits<double>::max();

constexpr Number kUnits{"units", &Tol::units, false, kAnything};
constexpr Number kSteps{"steps", &Tol::steps, true, kAnything};
constexpr Number kAbsolute{"absolute", &Tol::absolute, false, kAnything};
constexpr Number kRelative{"relative", &Tol::relative, false, kAnything};
constexpr Number kRmsFraction{"rms_fraction", &Tol::rms_fraction, false, kAnything};
constexpr Number kRowRelL2{"row_rel_l2", &Tol::row_rel_l2, false, kAnything};
constexpr Number kDifferent{"max_different_fraction", &Tol::max_different_fraction, false, 1.0};
constexpr Number kAlways{"always_allowed", &Tol::always_allowed, true, 1e9};

constexpr Number kUncertifiedMargin{"uncertified_margin", &Tol::uncertified_margin, false, kAnything};
constexpr Number kUncertifiedRows{"uncertified_rows", &Tol::uncertified_rows, false, 1.0};

constexpr std::array kBf16Numbers{kUnits, kRmsFraction, kRowRelL2, kDifferent, kAlways};
constexpr std::array kF32Numbers{kAbsolute, kRelative, kRmsFraction, kRowRelL2};
constexpr std::array kQuantisedNumbers{kSteps, kRmsFraction, kRowRelL2, kDifferent, kAlways};
constexpr std::array kUncertifiedNumbers{kUncertifiedMargin, kUncertifiedRows};

std::string count_limit_text(const StageTolerance& t) {
  return fmt::format("at most {:.4g} % (or {:.0f}) differ", 100 * t.max_different_fraction, t.always_allowed);
}

}  // namespace

const char* name_of(ToleranceKind kind) noexcept {
  switch (kind) {
    case ToleranceKind::exact:
      return "exact";
    case ToleranceKind::bf16:
      return "bf16";
    case ToleranceKind::f32:
      return "f32";
    case ToleranceKind::quantised:
      return "quantised";
  }
  return "?";
}

std::span<const ToleranceNumber> numbers_of(ToleranceKind kind) noexcept {
  switch (kind) {
    case ToleranceKind::exact:
      return {};
    case ToleranceKind::bf16:
      return kBf16Numbers;
    case ToleranceKind::f32:
      return kF32Numbers;
    case ToleranceKind::quantised:
      return kQuantisedNumbers;
  }
  return {};
}

std::span<const ToleranceNumber> optional_numbers_of(ToleranceKind kind) noexcept {
  return kind == ToleranceKind::exact ? std::span<const ToleranceNumber>(kUncertifiedNumbers)
                                      : std::span<const ToleranceNumber>();
}

std::int64_t StageTolerance::allowed_differences(std::int64_t count) const noexcept {
  constexpr double kRepresentation = 1e-9;  // 0.02 * 50 must be 1, whatever 0.02 is in binary
  const double share = std::floor(max_different_fraction * static_cast<double>(count) + kRepresentation);
  return static_cast<std::int64_t>(std::max(share, always_allowed));
}

std::string StageTolerance::text() const {
  switch (kind) {
    case ToleranceKind::exact:
      return allows_uncertified()
                 ? fmt::format("exact; uncertified picks within {:g} rms of the threshold in at most {:.4g} % of rows",
                               uncertified_margin, 100 * uncertified_rows)
                 : "exact";
    case ToleranceKind::bf16:
      return fmt::format("|d| <= {:g} unit + {:g} rms(row); row L2 <= {:g}; {}", units, rms_fraction, row_rel_l2,
                         count_limit_text(*this));
    case ToleranceKind::f32:
      return fmt::format("|d| <= {:g} + {:g} |reference| + {:g} rms(row); row L2 <= {:g}", absolute, relative,
                         rms_fraction, row_rel_l2);
    case ToleranceKind::quantised:
      return fmt::format("|d| <= {:g} quantiser step + {:g} rms(row); row L2 <= {:g}; {}", steps, rms_fraction,
                         row_rel_l2, count_limit_text(*this));
  }
  return {};
}

const StageTolerance& Tolerances::at(const StageInfo& stage) const {
  const auto found = stages_.find(stage.name);
  if (found == stages_.end()) {
    throw Error(ErrorKind::internal, "no tolerance for stage " + std::string(stage.name));
  }
  return found->second;
}

}  // namespace attndiff
