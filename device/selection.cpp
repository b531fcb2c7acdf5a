#include "device/selection.h"

#include <algorithm>
#include <limits>

#include "reference/compressor.h"
#include "reference/deepseek_v41/stages.h"
#include "reference/selection.h"

namespace attndiff::device {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

}  // namespace

std::vector<float> masked_scores(const ScoreRows& rows, std::int64_t t, std::int64_t visible, const Tensor* mask) {
  const auto length = static_cast<std::size_t>(rows.length);
  const auto row = rows.scores.subspan(static_cast<std::size_t>(t) * length, length);
  std::vector<float> values(length, kMasked);
  const auto seen = static_cast<std::ptrdiff_t>(std::min(visible, rows.length));
  std::transform(row.begin(), row.begin() + seen, values.begin(), [](Bf16 v) { return to_float(v); });
  if (mask != nullptr) {
    const auto keep = mask->as<std::uint8_t>().subspan(static_cast<std::size_t>(t) * length, length);
    for (std::size_t p = 0; p < length; ++p) {
      if (keep[p] == 0) {
        values[p] = kMasked;
      }
    }
  }
  return values;
}

Tensor candidate_mask(const ScoreRows& rows, reference::ThreadPool& pool) {
  Tensor mask(DType::u8, {rows.call.tokens, rows.length});
  const auto values = mask.as<std::uint8_t>();
  const auto length = static_cast<std::size_t>(rows.length);
  pool.parallel_for(rows.call.tokens, [&](std::int64_t t) {
    const std::int64_t visible = reference::visible_positions(rows.role, rows.call, t);
    const std::vector<float> scores = masked_scores(rows, t, visible, nullptr);
    reference::candidate_mask_row(scores, visible, rows.config,
                                  values.subspan(static_cast<std::size_t>(t) * length, length));
  });
  return mask;
}

Tensor select_positions(const ScoreRows& rows, const Tensor* mask, reference::ThreadPool& pool) {
  const std::int64_t k = deepseek_v41::selection_columns(rows.config, rows.role, rows.call);
  Tensor selection(DType::i32, {rows.call.tokens, k});
  const auto picks = selection.as<std::int32_t>();
  const auto columns = static_cast<std::size_t>(k);
  pool.parallel_for(rows.call.tokens, [&](std::int64_t t) {
    const std::int64_t visible = reference::visible_positions(rows.role, rows.call, t);
    const std::vector<float> scores = masked_scores(rows, t, visible, mask);
    reference::select_row(scores, visible, picks.subspan(static_cast<std::size_t>(t) * columns, columns));
  });
  return selection;
}

}  // namespace attndiff::device
