#include "harness/run/value_coverage.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <set>
#include <vector>

#include "reference/contract/bfloat16.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff {
namespace {

constexpr std::array kReal{deepseek_v41::kQr,     deepseek_v41::kQ,          deepseek_v41::kKvPre,
                           deepseek_v41::kLatent, deepseek_v41::kIndexKPre,  deepseek_v41::kIndexQPre,
                           deepseek_v41::kIndexW, deepseek_v41::kIndexScore, deepseek_v41::kCompressPre,
                           deepseek_v41::kO,      deepseek_v41::kOg,         deepseek_v41::kOut};

// Magnitudes as bits: in order, as the values are.
constexpr std::uint16_t kSmallestNormal = 0x0080;  // 2^-126
constexpr std::uint16_t kNearOverflow = 0x7d80;    // 2^124, within a factor of 16 of the largest
constexpr std::uint16_t kInfinity = 0x7f80;
constexpr float kShiftedLse = 32.0F;  // exp(32) is 2^46: without the maximum subtracted, float32 sums are lost

struct ExtremeValues {
  std::int64_t denormal = 0;
  std::int64_t near_overflow = 0;
};

/// Of at most kAtOnce values: counters as narrow as the values, which the compiler makes many of at a time.
constexpr std::int64_t kAtOnce = 0xffff;
ExtremeValues extreme_values(std::span<const Bf16> values) {
  std::uint16_t denormal = 0;
  std::uint16_t near_overflow = 0;
  for (const Bf16 v : values) {
    const auto magnitude = static_cast<std::uint16_t>(v.bits & 0x7fffU);
    denormal = static_cast<std::uint16_t>(denormal + (magnitude > 0 && magnitude < kSmallestNormal ? 1 : 0));
    near_overflow =
        static_cast<std::uint16_t>(near_overflow + (magnitude >= kNearOverflow && magnitude < kInfinity ? 1 : 0));
  }
  return {.denormal = denormal, .near_overflow = near_overflow};
}

void count_lse(const Tensor& lse, Coverage& coverage) {
  const auto values = lse.as<float>();
  coverage.add("raised_lse", std::count_if(values.begin(), values.end(), [](float v) { return v >= kShiftedLse; }));
  coverage.add("lowered_lse", std::count_if(values.begin(), values.end(), [](float v) { return v <= -kShiftedLse; }));
}

}  // namespace

bool counts_values_of(int stage) noexcept {
  return stage == deepseek_v41::kLse || std::find(kReal.begin(), kReal.end(), stage) != kReal.end();
}

void count_values(const CoverageCounter::Lookup& find, reference::ThreadPool* pool, Coverage& coverage) {
  for (const deepseek_v41::StageId id : kReal) {
    const Tensor* value = find(id);
    if (value == nullptr) {
      continue;
    }
    const auto values = value->as<Bf16>();
    std::atomic<std::int64_t> denormal{0};
    std::atomic<std::int64_t> near_overflow{0};
    const auto count_part = [&](std::int64_t begin, std::int64_t end) {
      const ExtremeValues part =
          extreme_values(values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
      denormal += part.denormal;
      near_overflow += part.near_overflow;
    };
    if (pool != nullptr) {
      pool->parallel_ranges(value->count(), kAtOnce, count_part);
    } else {
      for (std::int64_t begin = 0; begin < value->count(); begin += kAtOnce) {
        count_part(begin, std::min(value->count(), begin + kAtOnce));
      }
    }
    coverage.add("denormal_values", denormal);
    coverage.add("near_overflow_values", near_overflow);
  }
  if (const Tensor* lse = find(deepseek_v41::kLse)) {
    count_lse(*lse, coverage);
  }
}

void count_shift(std::span<const float> scores, Coverage& coverage) {
  constexpr std::size_t kFewest = 4;
  constexpr double kDeviations = 2;
  if (scores.size() < kFewest) {
    return;
  }
  const auto n = static_cast<double>(scores.size());
  double sum = 0;
  double squares = 0;
  for (const double s : scores) {
    sum += s;
    squares += s * s;
  }
  const double mean = sum / n;
  const double deviation = std::sqrt(std::max(0.0, squares / n - mean * mean));
  coverage.add("raised_scores", mean > kDeviations * deviation ? 1 : 0);
  coverage.add("lowered_scores", mean < -kDeviations * deviation ? 1 : 0);
}

void count_input_rows(const Tensor& x, Coverage& coverage) {
  constexpr double kOutlier = 4;  // a uniform row's largest entry is at most sqrt(3) times its root mean square
  const auto width = static_cast<std::size_t>(x.shape()[1]);
  const auto values = x.as<Bf16>();
  std::set<std::vector<std::uint16_t>> seen;
  for (std::size_t begin = 0; begin < values.size(); begin += width) {
    const auto row = values.subspan(begin, width);
    std::vector<std::uint16_t> bits;
    bits.reserve(width);
    double squares = 0;
    double largest = 0;
    for (const Bf16 v : row) {
      const double magnitude = std::fabs(to_float(v));
      squares += magnitude * magnitude;
      largest = std::max(largest, magnitude);
      bits.push_back(v.bits);
    }
    const bool constant = std::all_of(bits.begin(), bits.end(), [&](auto b) { return b == bits.front(); });
    coverage.add("constant_input_rows", constant && largest > 0 ? 1 : 0);
    coverage.add("outlier_input_rows", largest > kOutlier * std::sqrt(squares / static_cast<double>(width)) ? 1 : 0);
    coverage.add("repeated_input_rows", seen.insert(std::move(bits)).second ? 0 : 1);
  }
}

}  // namespace attndiff
