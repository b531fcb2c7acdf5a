#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/compare/tolerance.h"
#include "harness/compare/verdict.h"
#include "reference/contract/stage.h"
#include "reference/contract/tensor.h"
#include "reference/thread_pool.h"

namespace attndiff {

/// One element of a compared tensor with both values.
struct ComparedElement {
  std::int64_t flat = 0;            ///< row-major position
  std::vector<std::int64_t> index;  ///< the same, an index per axis
  double reference = 0;
  double candidate = 0;
  std::string reference_bits;  ///< the stored value in hexadecimal, as wide as the element type ("7fc0" in bfloat16)
  std::string candidate_bits;
};

/// A row by its leading axes.
struct ComparedRow {
  std::vector<std::int64_t> index;
  double rel_l2 = 0;  ///< |candidate - reference| / |reference|, 2-norms over the row's finite elements
};

/// What one comparison found. The verdict follows from `violations`, `nonfinite_mismatches`, `judged_differences`,
/// `worst_row`, the shapes and the degeneracy rule; every figure marked "informational" has no part in it.
/// A mismatch between a non-finite value and another one is infinitely wrong: max_abs, max_ulp, rel_l2 and bound_ratio
/// are then infinite.
struct Comparison {
  Verdict verdict = Verdict::pass;
  bool counted = false;  ///< elements were compared; false for two empty or two absent tensors and where one is absent
  std::int64_t count = 0;
  std::int64_t mismatches = 0;  ///< elements that differ at all
  std::int64_t judged_differences =
      0;  ///< the count limit's: a rescaled block counts once, a residue of cancellation not at all
  std::int64_t allowed_differences = 0;   ///< the count limit; `count` where the tolerance has none
  std::int64_t violations = 0;            ///< elements beyond their tolerance, non-finite mismatches included
  std::int64_t nonfinite_mismatches = 0;  ///< elements not finite on one side and not the same on the other
  std::int64_t both_nan = 0;              ///< elements that are NaN on both sides, which agree; informational
  double max_abs = 0;                     ///< largest |d|; informational
  double max_ulp = 0;                     ///< largest |d| in units of the reference's last place; informational
  double rel_l2 = 0;                      ///< |d| / |reference|, 2-norms over the tensor; informational
  std::optional<double> bound_ratio;      ///< largest |d| / allowed |d|; nothing for exact tolerances
  std::optional<ComparedRow> worst_row;   ///< the row with the largest rel_l2, where the tolerance limits it
  std::optional<ComparedElement> worst;   ///< largest bound ratio, a non-finite mismatch before all; element 0 if equal
  std::vector<std::int64_t> bad;          ///< row-major positions of violations, ascending; the first kMostBad of them
  std::string reason;                     ///< one line
};

/// Compares one stage of two implementations. The contract, in full (contract.h has it as a printed truth table):
/// - A tensor that one side has and the other has not is `missing`; an undefined tensor counts as absent. Absent on
///   both sides, or present on both with no elements: they agree, and `counted` is false.
/// - Another shape than the reference's, or another element type than the stage's, on either side: `fail`.
/// - NaN never equals a number. NaN on both sides at one element is agreement (the specification lets NaN flow), and
///   is counted. An infinity equals only itself. -0 equals +0. Denormals are numbers like others.
/// - Everything else is held to `tolerance` element by element, row by row and by the number of differing elements.
///   A row's relative error counts what exceeds the tolerance's absolute part; a difference of at most kCancellation
///   of the row's root mean square is not counted.
///   The root mean square of a row is taken over the reference's finite elements. A row whose reference is all zero has
///   no relative error; its elements are held to the tolerance's absolute part.
/// - `degenerate`: what would pass, in a float tensor of 16 or more elements that is constant on either side (all one
///   value, NaN being one, -0 and +0 the same). This holds for state too and needs no exception: an empty partial
///   group holds two values (k = 0, g = -inf), and a ring holds at least the row that the call wrote.
/// Memory beyond the tensors is a few rows for each thread and the positions of kMostBad violations. `pool` shares the
/// work, and the result does not depend on how many threads it has, nor on whether there is one.
///
/// `upstream` (one number for each leading index, or empty) says by how much the stage's own inputs differ already, in
/// relative 2-norm: what one flipped unit before the stage makes of a short row is no fault of the stage. The count
/// limit then grows by width * min(1, kFlipsPerDifference * upstream) for each leading index; values and rows are held
/// to their limits as before.
[[nodiscard]] Comparison compare(const StageInfo& stage, const Tensor* reference, const Tensor* candidate,
                                 const StageTolerance& tolerance, std::span<const double> upstream = {},
                                 reference::ThreadPool* pool = nullptr);

/// Where terms of a row's size cancel, a float32 sum of n of them leaves 8 sqrt(n) * 2^-24 of that size behind, 2^-16
/// for 1024 terms. Differences up to that are held to the element's tolerance and not counted: v - v in one order is a
/// tiny number in another, for as many elements as share the codes.
inline constexpr double kCancellation = 0x1p-16;

/// An output whose inputs moved by a relative difference d moves by about d of its row's rms, and crosses a rounding
/// boundary with a probability of that over the unit, 2^-8 to 2^-9 of the rms: 2^9 d, doubled for rows whose elements
/// are small. Measured: one flipped element of 128 in `o` (d = 2^-11) changed 4 of 32 elements of `og` and 22 of 64 of
/// `out`.
inline constexpr double kFlipsPerDifference = 0x1p10;

/// An element with both values and their bits. Throws Error(internal) for tensors of different types or forms.
[[nodiscard]] ComparedElement compared_element(const Tensor& reference, const Tensor& candidate, std::int64_t flat);

/// Violations whose positions are kept: enough to say where they lie, without a copy of a large tensor's.
inline constexpr std::size_t kMostBad = std::size_t{1} << 22U;

/// Elements from which on a constant float tensor is degenerate.
inline constexpr std::int64_t kDegenerateCount = 16;

}  // namespace attndiff
