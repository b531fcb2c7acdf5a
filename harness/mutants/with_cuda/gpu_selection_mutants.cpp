#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>

#include "harness/mutants/selection_orders.h"
#include "harness/mutants/with_cuda/gpu_parts.h"
#include "harness/mutants/with_cuda/launch_fault.h"
#include "reference/compressor.h"
#include "reference/deepseek_v41/stages.h"
#include "reference/selection.h"

namespace attndiff::mutants {
namespace {

using device::Launches;
using device::ScoreRows;
using reference::ThreadPool;
using Scores = std::span<const float>;

/// Selections with parts that can be wrong. The defaults are right.
struct SelectionVariant {
  std::int64_t (*visible)(const LayerRole&, const CallShape&, std::int64_t t) = reference::visible_positions;
  reference::TopkSet topk = reference::topk_set;
  bool masked = true;

  Tensor operator()(const ScoreRows& rows, const Tensor* mask, ThreadPool& pool) const {
    const std::int64_t k = deepseek_v41::selection_columns(rows.config, rows.role, rows.call);
    Tensor selection(DType::i32, {rows.call.tokens, k});
    const auto picks = selection.as<std::int32_t>();
    const auto columns = static_cast<std::size_t>(k);
    pool.parallel_for(rows.call.tokens, [&](std::int64_t t) {
      const std::int64_t seen = visible(rows.role, rows.call, t);
      const std::vector<float> scores = device::masked_scores(rows, t, seen, masked ? mask : nullptr);
      reference::select_row(scores, seen, picks.subspan(static_cast<std::size_t>(t) * columns, columns), topk);
    });
    return selection;
  }
};

Tensor newest_not_pinned(const ScoreRows& rows, ThreadPool& pool) {
  constexpr std::int64_t kNothingVisible = 0;
  const auto length = static_cast<std::size_t>(rows.length);
  Tensor mask(DType::u8, {rows.call.tokens, rows.length});
  const auto values = mask.as<std::uint8_t>();
  pool.parallel_for(rows.call.tokens, [&](std::int64_t t) {
    const std::int64_t seen = reference::visible_positions(rows.role, rows.call, t);
    reference::candidate_mask_row(device::masked_scores(rows, t, seen, nullptr), kNothingVisible, rows.config,
                                  values.subspan(static_cast<std::size_t>(t) * length, length));
  });
  return mask;
}

std::int64_t in_progress_visible(const LayerRole& role, const CallShape& call, std::int64_t t) {
  return call.prefill() ? (t + role.ratio) / role.ratio : reference::visible_positions(role, call, t);
}

/// A decode step's picks arrive one step late; those of a prefill, which are wider, in time.
Launches one_step_late() {
  const auto before = std::make_shared<std::map<const void*, std::vector<std::byte>>>();
  return replaced(&Launches::upload_selection,
                  [before](void* picks, const void* host, std::size_t bytes, cudaStream_t stream) {
                    const auto* first = static_cast<const std::byte*>(host);
                    std::vector<std::byte> current(first, first + bytes);
                    std::vector<std::byte>& last = (*before)[picks];
                    device::copy_to_device(picks, last.size() == bytes ? last.data() : host, bytes, stream);
                    last = std::move(current);
                  });
}

Mutant selecting(const std::string& name, const std::string& description, const std::string& fixture,
                 const SelectionVariant& variant) {
  return launch_fault(name, description, {"selection", fixture}, &Launches::select_positions, variant);
}

}  // namespace

std::vector<Mutant> gpu_selection_mutants() {
  SelectionVariant in_progress;
  in_progress.visible = in_progress_visible;
  SelectionVariant unmasked;
  unmasked.masked = false;
  SelectionVariant masked_before;
  masked_before.topk = masked_first_topk;
  SelectionVariant reversed;
  reversed.topk = last_index_topk;
  return {
      launch_fault("newest-block-not-pinned", "the newest visible block has to earn its place", {"candidates", "mid"},
                   &Launches::candidate_mask, newest_not_pinned),
      selecting("in-progress-group-visible", "a prefill's tokens see the group they are still part of", "micro",
                in_progress),
      selecting("candidate-mask-ignored", "index sources choose from all positions", "mid", unmasked),
      selecting("masked-before-valid", "masked positions are picked before all others", "mid", masked_before),
      selecting("tie-order-reversed", "of equal scores the highest positions win", "tiny-ties", reversed),
      fault("selection-of-the-step-before", "a decode step attends what was selected for the token before",
            {"selection", "one-index-source"}, with_launches(one_step_late)),
  };
}

}  // namespace attndiff::mutants
