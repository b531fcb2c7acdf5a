#include <limits>

#include "harness/mutants/attention_form.h"
#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"

namespace attndiff::mutants {
namespace {

using deepseek_v41::Steps;

constexpr int kBf16Bits = 8;

Steps attending_by(const AttentionForm& form) {
  Steps steps;
  steps.sparse_attention = form;
  return steps;
}

Mutant attention_fault(const std::string& name, const std::string& description, const Due& due,
                       const AttentionForm& form) {
  return fault(name, description, due, with_steps(attending_by(form)));
}

void add_controls(const char* fixture, std::vector<Mutant>& mutants) {
  constexpr std::int64_t kTile = 4;
  const std::string suffix = std::string("-") + fixture;
  mutants.push_back(control("attention-in-float32" + suffix, "attention is summed in float32, in one tile", fixture,
                            with_steps(attending_by({}))));
  mutants.push_back(
      control("attention-in-tiles" + suffix, "attention runs in tiles of 4 columns, declared as splits", fixture,
              with_steps(attending_by({.tile = kTile}),
                         {.accumulator = "float32", .bf16_softmax_weights = false, .attention_splits = 2})));
  mutants.push_back(
      control("bf16-softmax-weights-declared" + suffix, "softmax weights are rounded to bfloat16, and the plan says so",
              fixture,
              with_steps(attending_by({.weight_bits = kBf16Bits}),
                         {.accumulator = "float32", .bf16_softmax_weights = true, .attention_splits = 1})));
}

}  // namespace

std::vector<Mutant> attention_mutants() {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kLn2 = 0.6931472F;
  const Due lse{"lse", "micro"};
  std::vector<Mutant> mutants{
      attention_fault("leading-masked-tile-gives-nan", "a first tile without any entry subtracts -inf from -inf",
                      {"lse", "short-prefill"}, {.tile = 4, .guarded = false}),
      attention_fault("masked-lane-reads-poison", "a masked lane multiplies its zero weight by what memory holds",
                      {"o", "short-prefill"}, {.poison = kNaN}),
      attention_fault("masked-score-zero", "an absent entry scores 0 instead of -inf", lse, {.absent_score = 0}),
      attention_fault("sink-missing-from-the-denominator", "the sink only enters the maximum", lse,
                      {.sink_in_denominator = false}),
      attention_fault("sink-missing-from-the-maximum", "a sink far above all scores overflows",
                      {"lse", "extreme-values"}, {.sink_in_maximum = false}),
      attention_fault("sink-of-the-next-head", "each head takes its neighbour's sink", lse, {.sink_shift = 1}),
      attention_fault("attention-scale", "scores are 1 % too large", lse, {.scale_factor = 1.01F}),
      attention_fault("lse-in-base-2", "lse is a binary logarithm", lse, {.lse_unit = kLn2}),
      attention_fault("bf16-softmax-weights", "softmax weights are rounded to bfloat16, and the plan does not say so",
                      {"o", "micro"}, {.weight_bits = kBf16Bits}),
      fault("softmax-weights-of-seven-bits", "the plan declares bfloat16 softmax weights, but they lose one bit more",
            {"o", "mid"},
            with_steps(attending_by({.weight_bits = kBf16Bits - 1}),
                       {.accumulator = "float32", .bf16_softmax_weights = true, .attention_splits = 1})),
      fault("softmax-weights-of-four-bits", "the plan declares bfloat16 softmax weights, but they are e4m3",
            {"o", "micro"},
            with_steps(attending_by({.weight_bits = 4}),
                       {.accumulator = "float32", .bf16_softmax_weights = true, .attention_splits = 1})),
      fault("bf16-weights-for-declared-splits", "the plan declares split sums, but the weights are bfloat16",
            {"o", "micro"},
            with_steps(attending_by({.tile = 4, .weight_bits = kBf16Bits}),
                       {.accumulator = "float32", .bf16_softmax_weights = false, .attention_splits = 4})),
  };
  for (const char* fixture : {"micro", "mid", "short-prefill"}) {
    add_controls(fixture, mutants);
  }
  return mutants;
}

}  // namespace attndiff::mutants
