#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace attndiff {

/// One row with the index set that torch's CPU topk(k) gave for it.
struct TopkCase {
  std::string name;
  std::int64_t k = 0;
  std::vector<float> values;
  std::vector<std::int32_t> index_set;
};

/// Reads a file of recorded cases: {"cases": [{"name", "k", "values" and/or "bits", "index_set"}, ...]}, where `values`
/// are numbers or "inf", "-inf", "nan", and `bits` are the same float32 values as 8 hexadecimal digits each and win
/// over `values`. A case may carry "path" ("nth_element" or "partial_sort"), the branch its k selects. Other keys are
/// notes. Throws Error(input) naming file, case, expected and found for anything that is not of this form.
[[nodiscard]] std::vector<TopkCase> read_topk_cases(const std::string& file);

/// A case whose set came out differently.
struct TopkFailure {
  std::string name;
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::vector<std::int32_t> expected;
  std::vector<std::int32_t> found;
};

/// "NAME (k 8, n 24): expected but not picked 3, 5; picked but not expected 4, 9", at most ten indices a list.
[[nodiscard]] std::string describe(const TopkFailure& failure);

/// What a run over recorded cases showed.
struct TopkReport {
  enum class Verdict : std::uint8_t { pass, fail, nothing_checked };

  std::int64_t total = 0;
  std::int64_t passed = 0;
  std::vector<TopkFailure> failures;

  /// No case at all is not a pass.
  [[nodiscard]] Verdict verdict() const noexcept;
};

using TopkSelection = std::function<std::vector<std::int32_t>(std::span<const float> values, std::int64_t k)>;

/// Compares `select` with every case, exactly.
[[nodiscard]] TopkReport run_topk_cases(std::span<const TopkCase> cases, const TopkSelection& select);

/// The same for the built-in selection, reference::topk_set.
[[nodiscard]] TopkReport run_topk_cases(std::span<const TopkCase> cases);

}  // namespace attndiff
