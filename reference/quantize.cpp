#include "reference/quantize.h"

#include <algorithm>
#include <cmath>

#include "reference/contract/bfloat16.h"
#include "reference/formats.h"

namespace attndiff::reference {
namespace {

/// max(|x|, floor) that a NaN in the block does not escape, as torch.amax behaves.
float block_amax(std::span<const float> block, float floor) noexcept {
  float amax = floor;
  for (const float v : block) {
    const float a = std::fabs(v);
    amax = (std::isnan(a) || a > amax) ? a : amax;
    if (std::isnan(amax)) {
      break;
    }
  }
  return amax;
}

/// torch.clamp: NaN passes through.
float clamp(float v, float limit) noexcept {
  if (std::isnan(v)) {
    return v;
  }
  return std::min(std::max(v, -limit), limit);
}

template <typename Scale, typename Code>
void round_trip(std::span<float> row, std::int64_t block, Scale scale, float limit, Code code) noexcept {
  for (std::size_t begin = 0; begin < row.size(); begin += static_cast<std::size_t>(block)) {
    // A depth that is no multiple of the block leaves a shorter last one, as the weights' scales have it.
    const auto part = row.subspan(begin, std::min(static_cast<std::size_t>(block), row.size() - begin));
    const float s = scale(part);
    for (float& v : part) {
      v = round_bf16(code(clamp(v / s, limit)) * s);
    }
  }
}

}  // namespace

float fp8_scale(std::span<const float> block) noexcept { return pow2ceil(block_amax(block, 1e-4F) / kE4m3Max); }

float fp4_e8m0_scale(std::span<const float> block) noexcept {
  constexpr float kFloor = 6.0F * 0x1p-126F;
  return pow2ceil(block_amax(block, kFloor) / kE2m1Max);
}

float fp4_e4m3_scale(std::span<const float> block) noexcept {
  constexpr float kFloor = 6.0F * 0x1p-9F;
  return e4m3_decode(e4m3_encode(block_amax(block, kFloor) / kE2m1Max));
}

void fp8_round_trip(std::span<float> row) noexcept {
  round_trip(row, kFp8Block, fp8_scale, kE4m3Max, [](float v) { return e4m3_decode(e4m3_encode(v)); });
}

void fp4_e8m0_round_trip(std::span<float> row) noexcept {
  round_trip(row, kFp4E8m0Block, fp4_e8m0_scale, kE2m1Max, e2m1_round);
}

void fp4_e4m3_round_trip(std::span<float> row) noexcept {
  round_trip(row, kFp4E4m3Block, fp4_e4m3_scale, kE2m1Max, e2m1_round);
}

}  // namespace attndiff::reference
