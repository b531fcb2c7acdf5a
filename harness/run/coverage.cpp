#include "harness/run/coverage.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "harness/run/value_coverage.h"
#include "reference/compressor.h"
#include "reference/contract/error.h"
#include "reference/deepseek_v41/stages.h"
#include "reference/selection.h"

namespace attndiff {
namespace {

using deepseek_v41::StageId;

constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// A quantised stage and the counter of its zero blocks.
struct QuantisedStage {
  StageId stage;
  std::size_t block;
  const char* counter;
};
constexpr std::array<QuantisedStage, 4> kQuantised{{
    {deepseek_v41::kKv, 32, "zero_kv_blocks"},
    {deepseek_v41::kIndexK, 32, "zero_index_k_blocks"},
    {deepseek_v41::kIndexQ, 32, "zero_index_q_blocks"},
    {deepseek_v41::kCompressKv, 16, "zero_compress_kv_blocks"},
}};
constexpr std::array<StageId, 4> kOthers{deepseek_v41::kIndexScore, deepseek_v41::kCandidates, deepseek_v41::kSelection,
                                         deepseek_v41::kIdx};

bool counted(int stage) noexcept {
  return counts_values_of(stage) ||
         std::any_of(kQuantised.begin(), kQuantised.end(), [&](const auto& q) { return q.stage == stage; }) ||
         std::find(kOthers.begin(), kOthers.end(), stage) != kOthers.end();
}

/// Blocks of the rows' innermost axis without any value but zero.
std::int64_t zero_blocks(const Tensor& t, std::size_t block) {
  const auto width = static_cast<std::size_t>(t.shape()[t.shape().rank() - 1]);
  const auto values = t.as<Bf16>();
  std::int64_t zero = 0;
  for (std::size_t row = 0; row < values.size(); row += width) {
    for (std::size_t at = 0; at < width; at += block) {
      const auto part = values.subspan(row + at, std::min(block, width - at));
      zero += std::all_of(part.begin(), part.end(), [](Bf16 v) { return to_float(v) == 0.0F; }) ? 1 : 0;
    }
  }
  return zero;
}

template <typename T>
std::span<const T> row_of(const Tensor& t, std::int64_t row) {
  const auto width = static_cast<std::size_t>(t.shape()[1]);
  return t.as<T>().subspan(static_cast<std::size_t>(row) * width, width);
}

/// Positions of query `t` among the scored ones.
std::size_t visible(const LayerCall& call, std::int64_t t, std::size_t len) {
  return std::min(static_cast<std::size_t>(reference::visible_positions(call.role, call.shape, t)), len);
}

/// A query's scores as float32, -inf at what it does not see.
std::vector<float> visible_scores(std::span<const Bf16> scores, std::size_t seen) {
  std::vector<float> row(scores.size(), kMasked);
  std::transform(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(seen), row.begin(),
                 [](Bf16 v) { return to_float(v); });
  return row;
}

/// The k-th and the (k+1)-th best score of a row with more than k >= 1 positions, NaN before all numbers.
std::pair<float, float> around_threshold(std::vector<float> row, std::size_t k) {
  const auto before = [](float a, float b) { return (std::isnan(a) && !std::isnan(b)) || a > b; };
  const auto kth = row.begin() + static_cast<std::ptrdiff_t>(k) - 1;
  std::nth_element(row.begin(), kth, row.end(), before);
  return {*kth, *std::min_element(kth + 1, row.end(), before)};
}

}  // namespace

Coverage::Coverage() {
  for (const CoverageCounterInfo& counter : coverage_counters()) {
    counts_.emplace(counter.name, 0);
  }
}

std::int64_t Coverage::at(std::string_view counter) const {
  const auto it = counts_.find(counter);
  if (it == counts_.end()) {
    throw Error(ErrorKind::internal, "no coverage counter is called " + std::string(counter));
  }
  return it->second;
}

void Coverage::add(std::string_view counter, std::int64_t count) {
  const auto it = counts_.find(counter);
  if (it == counts_.end()) {
    throw Error(ErrorKind::internal, "no coverage counter is called " + std::string(counter));
  }
  it->second += count;
}

void Coverage::merge(const Coverage& other) {
  for (const auto& [name, count] : other.counts_) {
    add(name, count);
  }
}

Interest CoverageCounter::interest(const LayerCall&, const StageInfo& stage) {
  return counted(stage.id) ? Interest::read : Interest::nothing;
}

void CoverageCounter::on_stage(const LayerCall& call, StageView& view, Stream) {
  if (!counted(view.stage.id)) {
    return;
  }
  if (!(view.value.place == Place{})) {
    throw Error(ErrorKind::internal,
                "coverage is counted from host tensors; stage " + std::string(view.stage.name) + " lies on a device");
  }
  values_.insert_or_assign(view.stage.id, copy_of(view.value));
  if (view.stage.id == deepseek_v41::kOut) {
    const auto values = std::exchange(values_, {});
    count(call, [&](int stage) {
      const auto it = values.find(stage);
      return it == values.end() ? nullptr : &it->second;
    });
  }
}

void CoverageCounter::count(const LayerCall& call, const Lookup& find) {
  count_call_shape(call);
  count_zero_blocks(find);
  count_values(find, pool_, coverage_);
  const Tensor* scores = find(deepseek_v41::kIndexScore);
  if (scores != nullptr) {
    if (const Tensor* mask = find(deepseek_v41::kCandidates)) {
      count_candidates(call, *scores, *mask);
      candidates_ = *mask;
    }
    if (const Tensor* picks = find(deepseek_v41::kSelection)) {
      count_selection(call, *scores, *picks);
    }
  }
  if (const Tensor* idx = find(deepseek_v41::kIdx)) {
    count_indices(*idx);
  }
}

void CoverageCounter::count_call_shape(const LayerCall& call) {
  const CallShape& shape = call.shape;
  constexpr std::int64_t kFar = 1000000;
  const std::int64_t end = shape.start_pos + shape.tokens;
  coverage_.add("far_queries", std::clamp<std::int64_t>(end - kFar, 0, shape.tokens));
  bool& decoded = decoded_[{call.sequence, call.role.layer_id}];
  if (shape.prefill()) {
    decoded = false;
    count_prefill(call);
    return;
  }
  coverage_.add("ring_wraps", shape.start_pos >= call.config.window ? 1 : 0);
  if (call.role.is_kv_source && call.role.ratio > 1) {
    const bool completes = deepseek_v41::groups_completed(call.role, shape) > 0;
    coverage_.add(completes ? "completing_decodes" : "open_decodes");
    coverage_.add("carried_groups", !decoded && shape.start_pos % call.role.ratio != 0 ? 1 : 0);
  }
  decoded = true;
}

void CoverageCounter::count_prefill(const LayerCall& call) {
  const std::int64_t tokens = call.shape.tokens;
  const std::int64_t window = call.config.window;
  const bool groupless = call.role.is_kv_source && call.role.ratio > 1 && tokens < call.role.ratio;
  coverage_.add("long_prefills", tokens > window ? 1 : 0);
  coverage_.add("window_prefills", tokens == window ? 1 : 0);
  coverage_.add("window_and_one_prefills", tokens == window + 1 ? 1 : 0);
  coverage_.add("several_window_prefills", tokens > 2 * window ? 1 : 0);
  coverage_.add("odd_prefills", tokens % 2 == 1 && tokens >= window ? 1 : 0);
  coverage_.add("groupless_prefills", groupless ? 1 : 0);
}

void CoverageCounter::count_inputs(const Tensor& x) { count_input_rows(x, coverage_); }

void CoverageCounter::count_zero_blocks(const Lookup& find) {
  for (const QuantisedStage& quantised : kQuantised) {
    if (const Tensor* value = find(quantised.stage)) {
      coverage_.add(quantised.counter, zero_blocks(*value, quantised.block));
    }
  }
}

void CoverageCounter::count_candidates(const LayerCall& call, const Tensor& scores, const Tensor& mask) {
  const auto len = static_cast<std::size_t>(scores.shape()[1]);
  std::vector<std::uint8_t> unpinned(len);
  for (std::int64_t t = 0; t < scores.shape()[0]; ++t) {
    const std::size_t seen = visible(call, t, len);
    if (seen == 0) {
      continue;
    }
    const std::int64_t newest = static_cast<std::int64_t>(seen - 1) / call.config.cand_block;
    coverage_.add("strict_candidates", newest + 1 > call.config.cand_topk_blocks ? 1 : 0);
    // Nothing is pinned for a query that sees nothing, and its scores are -inf where this one's are.
    constexpr std::int64_t kSeesNothing = 0;
    reference::candidate_mask_row(visible_scores(row_of<Bf16>(scores, t), seen), kSeesNothing, call.config, unpinned);
    const auto at = static_cast<std::size_t>(newest * call.config.cand_block);
    coverage_.add("newest_block_pinned", row_of<std::uint8_t>(mask, t)[at] != 0 && unpinned[at] == 0 ? 1 : 0);
  }
}

void CoverageCounter::count_selection(const LayerCall& call, const Tensor& scores, const Tensor& picks) {
  const auto len = static_cast<std::size_t>(scores.shape()[1]);
  const auto k = static_cast<std::size_t>(picks.shape()[1]);
  const bool filtered = call.role.uses_candidates && candidates_.defined() && candidates_.shape() == scores.shape();
  std::vector<std::int32_t> unfiltered(k);
  for (std::int64_t t = 0; t < scores.shape()[0]; ++t) {
    const std::size_t seen = visible(call, t, len);
    std::vector<float> row = visible_scores(row_of<Bf16>(scores, t), seen);
    count_shift(std::span<const float>(row).first(seen), coverage_);
    const auto picked = row_of<std::int32_t>(picks, t);
    if (filtered) {
      reference::select_row(row, static_cast<std::int64_t>(seen), unfiltered);
      const auto mask = row_of<std::uint8_t>(candidates_, t);
      const auto outside = [&](std::int32_t p) { return p >= 0 && mask[static_cast<std::size_t>(p)] == 0; };
      for (std::size_t p = 0; p < seen; ++p) {
        if (mask[p] == 0) {
          row[p] = kMasked;
        }
      }
      const auto in_sight = mask.first(seen);
      coverage_.add("candidate_filter", std::find(in_sight.begin(), in_sight.end(), 0) != in_sight.end() ? 1 : 0);
      coverage_.add("candidate_filter_decides", std::equal(picked.begin(), picked.end(), unfiltered.begin()) ? 0 : 1);
      coverage_.add("masked_picks", std::any_of(picked.begin(), picked.end(), outside) ? 1 : 0);
    }
    coverage_.add("wholly_masked_rows", seen == 0 ? 1 : 0);
    coverage_.add("strict_selections", k < seen ? 1 : 0);
    coverage_.add("absent_picks", std::count(picked.begin(), picked.end(), -1));
    if (k > 0 && k < len) {
      const auto [last, next] = around_threshold(std::move(row), k);
      coverage_.add("threshold_ties", std::isfinite(last) && last == next ? 1 : 0);
      coverage_.add("masked_ties", last == kMasked && next == kMasked ? 1 : 0);
    }
  }
}

void CoverageCounter::count_indices(const Tensor& idx) {
  for (std::int64_t t = 0; idx.shape()[1] > 0 && t < idx.shape()[0]; ++t) {
    const auto row = row_of<std::int32_t>(idx, t);
    const auto absent = std::count(row.begin(), row.end(), -1);
    coverage_.add("absent_entries", absent);
    const bool leads = row.front() == -1 && absent < static_cast<std::ptrdiff_t>(row.size());
    coverage_.add("leading_absent_entries", leads ? 1 : 0);
  }
}

}  // namespace attndiff
