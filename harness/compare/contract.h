#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/compare.h"

namespace attndiff {

/// One line of the comparator's truth table: two tensors, and what compare() must say of them.
struct ContractCase {
  std::string_view name;
  std::string_view rule;  ///< one sentence: why the verdict is what it is
  Verdict expected = Verdict::pass;
  bool counted = true;
  StageInfo stage;
  StageTolerance tolerance;
  std::optional<Tensor> reference;  ///< nothing: absent
  std::optional<Tensor> candidate;

  [[nodiscard]] Comparison run() const;
};

/// The whole table: finite, NaN, infinities, -0, denormals, absent, empty, constant, wrong shape, wrong type.
[[nodiscard]] std::vector<ContractCase> comparator_contract();

/// The verdicts with their definitions, then the truth table, each case run now and shown with the verdict it got;
/// a case that gets another verdict than the contract's is marked.
[[nodiscard]] std::string contract_text();

}  // namespace attndiff
