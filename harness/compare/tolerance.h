#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "reference/contract/stage.h"

namespace attndiff {

/// How a stage's two tensors are held together. A *row* is the innermost axis: the whole token for [T, width], one
/// head of one token for [T, n_heads, head_dim].
enum class ToleranceKind : std::uint8_t {
  exact,  ///< equal values (-0 equals +0)
  /// |d| <= units * unit(reference) + rms_fraction * rms(row), a unit being bfloat16's last place
  bf16,
  /// |d| <= absolute + relative * |reference| + rms_fraction * rms(row)
  f32,
  /// |d| <= steps * step + rms_fraction * rms(row), a step being the grid's spacing below the larger of the two values
  quantised,
};

[[nodiscard]] const char* name_of(ToleranceKind kind) noexcept;

/// One stage's tolerance: numbers with the reason for each. Numbers that a kind does not use are zero.
struct StageTolerance {
  ToleranceKind kind = ToleranceKind::exact;
  double units = 0;
  double steps = 0;
  double absolute = 0;
  double relative = 0;
  double rms_fraction = 0;
  double row_rel_l2 = 0;              ///< largest |d| / |reference| in 2-norms over one row (bf16, f32, quantised)
  double max_different_fraction = 0;  ///< of a tensor's elements, how many may differ at all (bf16, quantised)
  double always_allowed = 0;          ///< differing elements that are allowed however small the tensor is
  /// Of a selection that nothing certifies: how far a position that only one side picked may score from the reference's
  /// threshold, in rms of the row's scores, and the share of rows that may differ. Set together or not at all (exact
  /// index stages).
  double uncertified_margin = 0;
  double uncertified_rows = 0;
  std::map<std::string, std::string, std::less<>> reasons;  ///< by number's name; "exact" for the exact kind

  [[nodiscard]] bool allows_uncertified() const { return reasons.contains("uncertified_margin"); }

  /// How many elements of `count` may differ: max(always_allowed, max_different_fraction * count).
  [[nodiscard]] std::int64_t allowed_differences(std::int64_t count) const noexcept;

  /// One line for tables and reports: "|d| <= 1 unit + 0.015625 rms(row); row L2 <= 0.015625; <= 2 % or 6 differ".
  [[nodiscard]] std::string text() const;
};

/// A number a tolerance kind has: the key in the file and its member.
struct ToleranceNumber {
  std::string_view key;
  double StageTolerance::*member;
  bool whole;      ///< a count
  double maximum;  ///< largest value that makes sense
};
[[nodiscard]] std::span<const ToleranceNumber> numbers_of(ToleranceKind kind) noexcept;
/// Those that a stage of a kind may have besides, all or none of them, and a rule has not.
[[nodiscard]] std::span<const ToleranceNumber> optional_numbers_of(ToleranceKind kind) noexcept;

/// The tolerances of every stage of a family.
class Tolerances {
 public:
  /// The built-in file (tolerances.toml beside this header).
  [[nodiscard]] static Tolerances defaults(const ModelFamily& family);

  /// The built-in ones with those of a TOML file in their place. Stages that the file does not name keep theirs.
  /// Throws Error(input) naming file, key, expected and found for: a file that cannot be read, an unknown key, stage,
  /// rule or kind, a number without a reason, a missing, negative or non-finite number, a kind the stage cannot have.
  [[nodiscard]] static Tolerances from_file(const std::string& path, const ModelFamily& family);

  /// The same from text; `source` stands for the file in messages.
  [[nodiscard]] static Tolerances parse(std::string_view toml, const std::string& source, const ModelFamily& family);

  /// Throws Error(internal) for a stage of another family.
  [[nodiscard]] const StageTolerance& at(const StageInfo& stage) const;

 private:
  friend class ToleranceFile;
  std::map<std::string, StageTolerance, std::less<>> rules_;
  std::map<std::string, StageTolerance, std::less<>> stages_;
};

/// The text of the built-in file.
[[nodiscard]] std::string_view default_tolerances_toml() noexcept;

}  // namespace attndiff
