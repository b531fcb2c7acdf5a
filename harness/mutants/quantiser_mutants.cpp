#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"
#include "reference/contract/bfloat16.h"
#include "reference/formats.h"
#include "reference/quantize.h"

namespace attndiff::mutants {
namespace {

using deepseek_v41::Steps;
using Block = std::span<const float>;

/// A quantiser's parts, each of which can be wrong.
struct Quantiser {
  std::int64_t block = 0;
  float (*scale)(Block) = nullptr;
  float limit = 0;  ///< values are clamped to +-limit before the code
  float (*code)(float) = nullptr;
  bool reciprocal = false;  ///< multiplies by 1 / scale instead of dividing

  void operator()(std::span<float> row) const {
    for (std::size_t begin = 0; begin < row.size(); begin += static_cast<std::size_t>(block)) {
      const auto part = row.subspan(begin, std::min(static_cast<std::size_t>(block), row.size() - begin));
      const float s = scale(part);
      const float inverse = 1.0F / s;
      for (float& v : part) {
        v = round_bf16(code(std::clamp(reciprocal ? v * inverse : v / s, -limit, limit)) * s);
      }
    }
  }
};

float e4m3(float v) { return reference::e4m3_decode(reference::e4m3_encode(v)); }

Quantiser fp8() { return {reference::kFp8Block, reference::fp8_scale, reference::kE4m3Max, e4m3}; }
Quantiser fp4_e8m0() {
  return {reference::kFp4E8m0Block, reference::fp4_e8m0_scale, reference::kE2m1Max, reference::e2m1_round};
}
Quantiser fp4_e4m3() {
  return {reference::kFp4E4m3Block, reference::fp4_e4m3_scale, reference::kE2m1Max, reference::e2m1_round};
}

template <auto Member, typename Value>
Quantiser with(Quantiser quantiser, Value value) {
  quantiser.*Member = value;
  return quantiser;
}

float amax(Block block, float floor = 0) {
  float largest = floor;
  for (const float v : block) {
    largest = std::max(largest, std::fabs(v));
  }
  return largest;
}

constexpr float kFp8Floor = 1e-4F;
constexpr float kE8m0Floor = 6.0F * 0x1p-126F;
constexpr float kE4m3Floor = 6.0F * 0x1p-9F;

float pow2floor(float v) { return std::ldexp(1.0F, std::ilogb(v)); }
float fp8_scale_by_floor(Block b) { return pow2floor(amax(b, kFp8Floor) / reference::kE4m3Max); }
float e8m0_scale_by_floor(Block b) { return pow2floor(amax(b, kE8m0Floor) / reference::kE2m1Max); }
float e8m0_scale_by_rounding(Block b) {
  return std::exp2(std::round(std::log2(amax(b, kE8m0Floor) / reference::kE2m1Max)));
}
float fp8_scale_not_a_power(Block b) { return amax(b, kFp8Floor) / reference::kE4m3Max; }
float fp8_scale_without_floor(Block b) { return reference::pow2ceil(amax(b) / reference::kE4m3Max); }
float e4m3_scale_to_nan(Block b) {
  constexpr float kOverflow = 464.0F;  // halfway from 448 to the next value the format would have
  const float v = amax(b, kE4m3Floor) / reference::kE2m1Max;
  return v > kOverflow ? std::numeric_limits<float>::quiet_NaN() : e4m3(v);
}
float e4m3_scale_of_256(Block b) { return std::min(256.0F, reference::fp4_e4m3_scale(b)); }
float e4m3_scale_as_float(Block b) { return amax(b, kE4m3Floor) / reference::kE2m1Max; }

/// Nearest e2m1 value with ties rounded up in magnitude, or down.
float e2m1_ties(float v, bool away) {
  constexpr std::array<float, 8> kValues{0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  const float magnitude = std::fabs(v);
  std::size_t code = 0;
  while (code + 1 < kValues.size()) {
    const float middle = (kValues.at(code) + kValues.at(code + 1)) / 2;
    if (away ? magnitude < middle : magnitude <= middle) {
      break;
    }
    ++code;
  }
  return std::copysign(kValues.at(code), v);
}
float e2m1_ties_away(float v) { return e2m1_ties(v, true); }
float e2m1_ties_to_zero(float v) { return e2m1_ties(v, false); }

float e4m3_truncated(float v) {
  const float nearest = e4m3(v);
  if (std::fabs(nearest) <= std::fabs(v)) {
    return nearest;
  }
  const auto code = reference::e4m3_encode(nearest);
  return reference::e4m3_decode(static_cast<std::uint8_t>(code - 1));
}

/// The window row's last block, where the rotated tail lies, stays in bfloat16.
void tail_not_quantised(std::span<float> row) {
  reference::fp8_round_trip(row.first(row.size() - static_cast<std::size_t>(reference::kFp8Block)));
}

Mutant equivalent_reciprocal(const std::string& name, std::function<void(std::span<float>)> Steps::*step,
                             const Quantiser& quantiser) {
  Steps steps;
  steps.*step = with<&Quantiser::reciprocal>(quantiser, true);
  return {.name = name,
          .description = "the quantiser multiplies by the reciprocal of its scale",
          .kind = MutantKind::equivalent,
          .stage = {},
          .fixture = "mid",
          .proof =
              "the scale is a power of two 2^e with -126 <= e <= 126, so its reciprocal 2^-e is a normal float32 "
              "and exact; x / 2^e and x * 2^-e round the same real number",
          .make = with_steps(std::move(steps))};
}

}  // namespace

std::vector<Mutant> quantiser_mutants() {
  constexpr auto kScale = &Quantiser::scale;
  constexpr auto kCode = &Quantiser::code;
  return {
      step_fault("fp8-scale-by-floor", "the window row's power-of-two scale is rounded down", {"kv", "tiny"},
                 &Steps::quantise_window_row, with<kScale>(fp8(), fp8_scale_by_floor)),
      step_fault("fp8-scale-not-a-power", "the window row's scale is amax / 448 itself", {"kv", "tiny"},
                 &Steps::quantise_window_row, with<kScale>(fp8(), fp8_scale_not_a_power)),
      step_fault("e4m3-saturates-at-256", "window rows are clamped at 256 instead of 448", {"kv", "tiny"},
                 &Steps::quantise_window_row, with<&Quantiser::limit>(fp8(), 256.0F)),
      step_fault("e4m3-truncated", "e4m3 codes are truncated instead of rounded", {"kv", "tiny"},
                 &Steps::quantise_window_row, with<kCode>(fp8(), e4m3_truncated)),
      step_fault("window-tail-not-quantised", "the rotated tail of a window row stays in bfloat16", {"kv", "micro"},
                 &Steps::quantise_window_row, tail_not_quantised),
      step_fault("zero-block-gives-nan", "a block of zeros is divided by a scale of zero", {"kv", "zero-token"},
                 &Steps::quantise_window_row, with<kScale>(fp8(), fp8_scale_without_floor)),
      step_fault("e8m0-scale-by-floor", "the index keys' power-of-two scale is rounded down", {"index_k", "tiny"},
                 &Steps::quantise_index, with<kScale>(fp4_e8m0(), e8m0_scale_by_floor)),
      step_fault("e8m0-scale-by-rounding", "the index keys' power-of-two scale is the nearest one", {"index_k", "tiny"},
                 &Steps::quantise_index, with<kScale>(fp4_e8m0(), e8m0_scale_by_rounding)),
      step_fault("e2m1-ties-away", "halfway values leave zero instead of going to the even code", {"index_k", "mid"},
                 &Steps::quantise_index, with<kCode>(fp4_e8m0(), e2m1_ties_away)),
      step_fault("e2m1-ties-to-zero", "halfway values go to the smaller magnitude", {"index_k", "mid"},
                 &Steps::quantise_index, with<kCode>(fp4_e8m0(), e2m1_ties_to_zero)),
      step_fault("latent-block-of-32", "two blocks of a latent share one scale", {"compress_kv", "micro"},
                 &Steps::quantise_latent, with<&Quantiser::block>(fp4_e4m3(), std::int64_t{32})),
      step_fault("latent-scale-as-float", "a latent's scale is not rounded to e4m3", {"compress_kv", "micro"},
                 &Steps::quantise_latent, with<kScale>(fp4_e4m3(), e4m3_scale_as_float)),
      step_fault("e4m3-scale-overflows-to-nan", "a latent's scale beyond 448 becomes NaN instead of saturating",
                 {"compress_kv", "extreme-values"}, &Steps::quantise_latent,
                 with<kScale>(fp4_e4m3(), e4m3_scale_to_nan)),
      step_fault("e4m3-scale-saturates-at-256", "a latent's scale saturates at 256 instead of 448",
                 {"compress_kv", "extreme-values"}, &Steps::quantise_latent,
                 with<kScale>(fp4_e4m3(), e4m3_scale_of_256)),
      step_fault("latent-reciprocal", "a latent is multiplied by the reciprocal of its scale", {"compress_kv", "mid"},
                 &Steps::quantise_latent, with<&Quantiser::reciprocal>(fp4_e4m3(), true)),
      equivalent_reciprocal("window-row-reciprocal", &Steps::quantise_window_row, fp8()),
      equivalent_reciprocal("index-reciprocal", &Steps::quantise_index, fp4_e8m0()),
  };
}

}  // namespace attndiff::mutants
