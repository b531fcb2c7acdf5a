#include <algorithm>
#include <limits>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"

namespace attndiff::mutants {
namespace {

void fill(TensorView& view, float value) {
  const auto values = elements<Bf16>(view);
  std::fill(values.begin(), values.end(), to_bf16(value));
}

void zeros(const LayerCall&, TensorView& view) { fill(view, 0); }
void constant(const LayerCall&, TensorView& view) { fill(view, 1); }
void all_nan(const LayerCall&, TensorView& view) { fill(view, std::numeric_limits<float>::quiet_NaN()); }

void one_nan(const LayerCall&, TensorView& view) {
  const auto values = elements<Bf16>(view);
  values[values.size() / 2] = to_bf16(std::numeric_limits<float>::quiet_NaN());
}

void negated(const LayerCall&, TensorView& view) {
  for (Bf16& v : elements<Bf16>(view)) {
    v = to_bf16(-to_float(v));
  }
}

/// The very last row of a prefill: the easiest to leave out.
void last_row_dead(const LayerCall& call, TensorView& view) {
  if (call.shape.prefill()) {
    const auto width = static_cast<std::size_t>(view.shape[view.shape.rank() - 1]);
    const auto row = elements<Bf16>(view).last(width);
    std::fill(row.begin(), row.end(), Bf16{});
  }
}

/// The last element, moved by an eighth of itself.
void last_element_wrong(const LayerCall&, TensorView& view) {
  Bf16& last = elements<Bf16>(view).back();
  last = to_bf16(to_float(last) * 1.125F + 0x1p-8F);
}

/// Every value one bfloat16 unit larger in magnitude.
void one_unit_off(const LayerCall&, TensorView& view) {
  for (Bf16& v : elements<Bf16>(view)) {
    v = Bf16{static_cast<std::uint16_t>(v.bits + 1)};
  }
}

/// Every other value one bfloat16 unit smaller in magnitude: within a unit everywhere.
void every_other_unit_lower(const LayerCall&, TensorView& view) {
  bool lower = false;
  for (Bf16& v : elements<Bf16>(view)) {
    lower = !lower;
    v = lower && (v.bits & 0x7fffU) != 0 ? Bf16{static_cast<std::uint16_t>(v.bits - 1)} : v;
  }
}

StageChange previous_layer() {
  return [before = std::vector<Bf16>()](const LayerCall&, TensorView& view) mutable {
    const auto values = elements<Bf16>(view);
    const std::vector<Bf16> own(values.begin(), values.end());
    if (before.size() == own.size()) {
      std::copy(before.begin(), before.end(), values.begin());
    }
    before = own;
    return true;
  };
}

StageChange withheld() {
  return [](const LayerCall&, TensorView&) { return false; };
}

void swapped_heads(const LayerCall&, TensorView& view) {
  const auto width = static_cast<std::size_t>(view.shape[2]);
  const auto values = elements<Bf16>(view);
  const auto heads = static_cast<std::size_t>(view.shape[1]);
  for (std::size_t begin = 0; begin < values.size(); begin += heads * width) {
    std::swap_ranges(values.begin() + static_cast<std::ptrdiff_t>(begin),
                     values.begin() + static_cast<std::ptrdiff_t>(begin + width),
                     values.begin() + static_cast<std::ptrdiff_t>(begin + width));
  }
}

void throws(const LayerCall& call, TensorView&) {
  if (!call.shape.prefill()) {
    throw Error(ErrorKind::refused, "a device error, as a wrong kernel gives");
  }
}

using Change = void (*)(const LayerCall&, TensorView&);

Mutant out_fault(const std::string& name, const std::string& description, Change change) {
  return fault(name, description, {"out", "tiny"}, with_stage("out", change));
}

}  // namespace

std::vector<Mutant> candidate_mutants() {
  return {
      out_fault("returns-zeros", "the candidate returns zeros", zeros),
      out_fault("returns-a-constant", "the candidate returns one value everywhere", constant),
      out_fault("returns-nan", "the candidate returns NaN everywhere", all_nan),
      out_fault("returns-one-nan", "one element of the result is NaN", one_nan),
      out_fault("returns-the-negative", "the result has the wrong sign", negated),
      out_fault("last-row-dead", "a prefill's last row is zero", last_row_dead),
      out_fault("last-element-wrong", "only the very last element is wrong", last_element_wrong),
      out_fault("one-unit-off", "every value is one unit too large", one_unit_off),
      out_fault("every-other-unit-lower", "every other value is one unit too small", every_other_unit_lower),
      out_fault("crashes-in-decode", "the candidate throws at its first decode step", throws),
      fault("returns-the-previous-layer", "a layer returns what the layer before it did", {"out", "tiny"},
            with_stage("out", previous_layer)),
      fault("heads-swapped", "two heads of o change places", {"o", "micro"}, with_stage("o", swapped_heads)),
      fault("stage-missing", "index weights are planned but never offered", {"index_w", "tiny"},
            with_stage("index_w", withheld)),
      fault("out-missing", "the result is planned but never offered", {"out", "tiny"}, with_stage("out", withheld)),
      fault("out-not-planned", "the plan does not publish the result", {"out", "tiny"}, with_unplanned("out")),
      fault("ring-not-planned", "the plan does not publish the ring that was written", {"ring", "tiny"},
            with_unplanned("ring")),
      fault("selection-not-planned", "the plan does not publish the selection that was made", {"selection", "tiny"},
            with_unplanned("selection")),
  };
}

}  // namespace attndiff::mutants
