#include "harness/compare/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace attndiff {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kDenormal = 0x1p-130F;  // also a denormal of bfloat16
constexpr std::int64_t kWidth = 32;
constexpr std::size_t kChanged = 5;  // the element the cases differ in

StageInfo real_stage() {
  return {.id = 0,
          .name = "real",
          .kind = StageKind::real,
          .dtype = DType::bf16,
          .rounding = Rounding::bf16,
          .inputs = {},
          .shape = nullptr};
}

StageInfo index_stage() {
  return {.id = 1,
          .name = "index",
          .kind = StageKind::index,
          .dtype = DType::i32,
          .rounding = Rounding::none,
          .inputs = {},
          .shape = nullptr};
}

StageTolerance within_a_unit() {
  StageTolerance t;
  t.kind = ToleranceKind::bf16;
  t.units = 1;
  t.rms_fraction = 0x1p-6;
  t.row_rel_l2 = 0x1p-6;
  t.max_different_fraction = 0.5;
  return t;
}

/// bf16 [2, 32]: distinct values around 1, with `v` at one place.
Tensor values_with(float v) {
  Tensor t(DType::bf16, {2, kWidth});
  const auto out = t.as<Bf16>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = to_bf16(1.0F + static_cast<float>(i) / kWidth);
  }
  out[kChanged] = to_bf16(v);
  return t;
}

Tensor constant(std::int64_t n, float v) {
  Tensor t(DType::bf16, {n});
  std::fill(t.as<Bf16>().begin(), t.as<Bf16>().end(), to_bf16(v));
  return t;
}

/// bf16 [2, 16]: zeros but for one element, so that -0, denormals and the row's size can be told apart.
Tensor zeros_with(float v) {
  Tensor t(DType::bf16, {2, 16});
  t.as<Bf16>().front() = to_bf16(1.0F);
  t.as<Bf16>().back() = to_bf16(v);
  return t;
}

Tensor positions(std::int32_t last) {
  Tensor t(DType::i32, {1, 4});
  const auto out = t.as<std::int32_t>();
  out[0] = -1;
  out[1] = 3;
  out[2] = 7;
  out[3] = last;
  return t;
}

ContractCase real_case(std::string_view name, std::string_view rule, Verdict expected, std::optional<Tensor> reference,
                       std::optional<Tensor> candidate, bool counted = true) {
  return {.name = name,
          .rule = rule,
          .expected = expected,
          .counted = counted,
          .stage = real_stage(),
          .tolerance = within_a_unit(),
          .reference = std::move(reference),
          .candidate = std::move(candidate)};
}

ContractCase index_case(std::string_view name, std::string_view rule, Verdict expected, Tensor reference,
                        Tensor candidate) {
  return {.name = name,
          .rule = rule,
          .expected = expected,
          .counted = true,
          .stage = index_stage(),
          .tolerance = {},
          .reference = std::move(reference),
          .candidate = std::move(candidate)};
}

using Cases = std::vector<ContractCase>;

void add_values(Cases& cases) {
  constexpr Verdict kPass = Verdict::pass;
  constexpr Verdict kFail = Verdict::fail;
  const auto add = [&](std::string_view name, std::string_view rule, Verdict expected, float r, float c) {
    cases.push_back(real_case(name, rule, expected, values_with(r), values_with(c)));
  };
  add("finite, equal", "Equal values agree.", kPass, 1.5F, 1.5F);
  add("finite, one unit apart", "A stage's tolerance holds element by element.", kPass, 1.5F, 1.5078125F);
  add("finite, far apart", "A stage's tolerance holds element by element.", kFail, 1.5F, 1.75F);
  add("finite, negated", "The sign counts.", kFail, 1.5F, -1.5F);
  add("NaN against a number", "NaN never equals a number.", kFail, 1.5F, kNan);
  add("a number against NaN", "NaN never equals a number.", kFail, kNan, 1.5F);
  add("NaN against NaN", "NaN on both sides agrees, and is counted.", kPass, kNan, kNan);
  add("NaN against +inf", "NaN equals only NaN.", kFail, kNan, kInf);
  add("+inf against +inf", "An infinity equals itself.", kPass, kInf, kInf);
  add("+inf against -inf", "An infinity equals only itself.", kFail, kInf, -kInf);
  add("+inf against a number", "An infinity equals only itself.", kFail, kInf, 1.5F);
  add("the largest number against +inf", "An infinity equals only itself.", kFail, 0x1.fep127F, kInf);
  cases.push_back(
      real_case("+0 against -0", "Zeros of either sign are equal.", kPass, zeros_with(0.0F), zeros_with(-0.0F)));
  cases.push_back(real_case("a denormal against 0, row of zeros",
                            "Denormals are numbers; nothing but one unit is allowed in a row of zeros.", kFail,
                            zeros_with(0.0F), zeros_with(kDenormal)));
  cases.push_back(real_case("a denormal against itself", "Denormals are numbers.", kPass, zeros_with(kDenormal),
                            zeros_with(kDenormal)));
}

void add_structure(Cases& cases) {
  const Tensor some = values_with(1.5F);
  cases.push_back(real_case("absent in the candidate", "What the other side has must be there.", Verdict::missing, some,
                            std::nullopt, false));
  cases.push_back(real_case("absent in the reference", "What the other side has must be there.", Verdict::missing,
                            std::nullopt, some, false));
  cases.push_back(real_case("absent on both sides", "Nothing to compare: agrees, and is no comparison.", Verdict::pass,
                            std::nullopt, std::nullopt, false));
  cases.push_back(real_case("empty on both sides", "Nothing to compare: agrees, and is no comparison.", Verdict::pass,
                            Tensor(DType::bf16, {3, 0}), Tensor(DType::bf16, {3, 0}), false));
  cases.push_back(
      real_case("empty against some", "The shapes differ.", Verdict::fail, some, Tensor(DType::bf16, {0, kWidth})));
  cases.push_back(real_case("wrong shape, equal bytes", "The shapes differ.", Verdict::fail, some,
                            Tensor(some).reshaped({kWidth, 2})));
  cases.push_back(real_case("wrong element type, equal values", "The stage table says the type.", Verdict::fail, some,
                            to_f32(some)));
}

void add_constants(Cases& cases) {
  constexpr std::string_view kRule = "16 or more elements of one value show nothing.";
  cases.push_back(
      real_case("16 equal values on both sides", kRule, Verdict::degenerate, constant(16, 2.0F), constant(16, 2.0F)));
  cases.push_back(
      real_case("16 zeros on both sides", kRule, Verdict::degenerate, constant(16, 0.0F), constant(16, 0.0F)));
  cases.push_back(
      real_case("16 NaN on both sides", kRule, Verdict::degenerate, constant(16, kNan), constant(16, kNan)));
  cases.push_back(real_case("15 equal values on both sides", "Below 16 elements a constant may be chance.",
                            Verdict::pass, constant(15, 2.0F), constant(15, 2.0F)));
  Tensor zeroed(DType::bf16, {2, kWidth});
  cases.push_back(real_case("candidate all zero", "A difference beyond the tolerance is named first.", Verdict::fail,
                            values_with(1.5F), std::move(zeroed)));
}

void add_discrete(Cases& cases) {
  cases.push_back(
      index_case("positions, equal", "Discrete values are exact.", Verdict::pass, positions(9), positions(9)));
  cases.push_back(index_case("positions, one off by one", "Discrete values are exact.", Verdict::fail, positions(9),
                             positions(10)));
  cases.push_back(index_case("positions, -1 where one was due", "Absent is a value like another.", Verdict::fail,
                             positions(9), positions(-1)));
}

}  // namespace

Comparison ContractCase::run() const {
  return compare(stage, reference.has_value() ? &*reference : nullptr, candidate.has_value() ? &*candidate : nullptr,
                 tolerance);
}

std::vector<ContractCase> comparator_contract() {
  Cases cases;
  add_values(cases);
  add_structure(cases);
  add_constants(cases);
  add_discrete(cases);
  return cases;
}

std::string contract_text() {
  std::string text = "Verdicts\n";
  for (const VerdictInfo& v : verdicts()) {
    text += fmt::format("  {:<12} {}\n", v.name, v.definition);
  }
  text += "\nTruth table of the comparator (reference against candidate)\n";
  const std::vector<ContractCase> cases = comparator_contract();
  std::size_t width = 0;
  for (const ContractCase& c : cases) {
    width = std::max(width, c.name.size());
  }
  for (const ContractCase& c : cases) {
    const Comparison got = c.run();
    const bool kept = got.verdict == c.expected && got.counted == c.counted;
    text += fmt::format("  {:<{}}  {:<10} {}{}\n", c.name, width, name_of(got.verdict), c.rule,
                        kept ? "" : fmt::format(" BROKEN: the contract says {}", name_of(c.expected)));
  }
  return text;
}

}  // namespace attndiff
