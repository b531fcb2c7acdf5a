#include <algorithm>
#include <map>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"
#include "reference/deepseek_v41/stages.h"
#include "reference/window.h"

namespace attndiff::mutants {
namespace {

using deepseek_v41::Steps;
using Picks = std::span<std::int32_t>;

std::int64_t slot_past_the_wrap(std::int64_t position, std::int64_t window) {
  return reference::ring_slot(position < window ? position : position + 1, window);
}

void one_too_wide(const CallShape& call, std::int64_t window, std::int64_t t, Picks out) {
  reference::window_indices(call, window, t, out);
  if (call.prefill() && t >= window) {
    std::copy_backward(out.begin(), out.end() - 1, out.end());
    out.front() = static_cast<std::int32_t>(t - window);
  }
}

void later_tokens_visible(const CallShape& call, std::int64_t window, std::int64_t t, Picks out) {
  reference::window_indices(call, window, t, out);
  if (call.prefill()) {
    const std::int64_t base = std::max<std::int64_t>(0, t - window + 1);
    for (std::size_t j = 0; j < out.size(); ++j) {
      out[j] = static_cast<std::int32_t>(base + static_cast<std::int64_t>(j));
    }
  }
}

void from_slot_zero(const CallShape& call, std::int64_t window, std::int64_t t, Picks out) {
  reference::window_indices(call, window, t, out);
  if (!call.prefill()) {
    std::sort(out.begin(), out.end(), [](std::int32_t a, std::int32_t b) {
      return static_cast<std::uint32_t>(a) < static_cast<std::uint32_t>(b);  // absent entries last
    });
  }
}

void unwritten_slots_visible(const CallShape& call, std::int64_t window, std::int64_t t, Picks out) {
  reference::window_indices(call, window, t, out);
  if (!call.prefill()) {
    for (std::size_t j = 0; j < out.size(); ++j) {
      out[j] = static_cast<std::int32_t>((call.start_pos % window + 1 + static_cast<std::int64_t>(j)) % window);
    }
  }
}

/// Where the selection's columns of one query begin in `idx`.
std::span<std::int32_t> selection_part(const LayerCall& call, const TensorView& idx, std::int64_t t) {
  const auto columns = static_cast<std::size_t>(idx.shape[1]);
  const auto window = static_cast<std::size_t>(deepseek_v41::window_columns(call.config, call.shape));
  return elements<std::int32_t>(idx).subspan(static_cast<std::size_t>(t) * columns, columns).subspan(window);
}

void offset_of_the_columns(const LayerCall& call, TensorView& idx) {
  const auto surplus = static_cast<std::int32_t>(deepseek_v41::attended_window_rows(call.config, call.shape) -
                                                 deepseek_v41::window_columns(call.config, call.shape));
  for (std::int64_t t = 0; t < call.shape.tokens; ++t) {
    for (std::int32_t& entry : selection_part(call, idx, t)) {
      entry = entry < 0 ? entry : entry - surplus;
    }
  }
}

/// A reader attends what its source had selected for the token before.
StageChange selection_of_the_step_before() {
  return
      [before = std::map<std::int64_t, std::vector<std::int32_t>>()](const LayerCall& call, TensorView& idx) mutable {
        if (call.role.ratio == 0 || call.role.is_index_source || call.shape.prefill()) {
          return true;
        }
        const auto picks = selection_part(call, idx, 0);
        const std::vector<std::int32_t> current(picks.begin(), picks.end());
        const auto& last = before[call.role.layer_id];
        if (last.size() == current.size()) {
          std::copy(last.begin(), last.end(), picks.begin());
        }
        before[call.role.layer_id] = current;
        return true;
      };
}

void ring_not_handed_off(const LayerCall& call, TensorView& ring) {
  if (call.shape.prefill()) {
    std::fill(elements<Bf16>(ring).begin(), elements<Bf16>(ring).end(), Bf16{});
  }
}

}  // namespace

std::vector<Mutant> window_mutants() {
  return {
      step_fault("ring-slot-off-by-one", "once the ring has wrapped, a row goes one slot too far", {"ring", "micro"},
                 &Steps::ring_slot, slot_past_the_wrap),
      step_fault("prefill-keeps-the-first-window", "the ring keeps a prefill's first rows instead of its last",
                 {"ring", "micro"}, &Steps::first_kept_token, [](std::int64_t, std::int64_t) { return 0; }),
      fault("ring-not-handed-off", "a prefill leaves an empty ring to decode", {"ring", "micro"},
            with_stage("ring", ring_not_handed_off)),
      step_fault("window-one-too-wide", "a prefill's window reaches one token too far back", {"idx", "micro"},
                 &Steps::window_indices, one_too_wide),
      step_fault("later-tokens-visible", "a prefill's early tokens see tokens after them", {"idx", "micro"},
                 &Steps::window_indices, later_tokens_visible),
      step_fault("ring-read-from-slot-zero", "decode lists the ring by slot instead of oldest first", {"idx", "micro"},
                 &Steps::window_indices, from_slot_zero),
      step_fault("unwritten-slots-visible", "decode attends slots that no token has written", {"idx", "short-prefill"},
                 &Steps::window_indices, unwritten_slots_visible),
      step_fault("absent-plus-offset", "an absent pick gets the offset too, and so becomes the last window row",
                 {"idx", "micro"}, &Steps::offset_pick,
                 [](std::int32_t pick, std::int64_t offset) { return static_cast<std::int32_t>(pick + offset); }),
      step_fault("offset-off-by-one", "compressed rows are counted from one", {"idx", "micro"}, &Steps::offset_pick,
                 [](std::int32_t pick, std::int64_t offset) {
                   return pick <= 0 ? pick : static_cast<std::int32_t>(pick + offset - 1);
                 }),
      fault("offset-of-the-columns", "a prefill's offset is the window's columns instead of its own rows",
            {"idx", "micro"}, with_stage("idx", offset_of_the_columns)),
      fault("selection-of-the-step-before", "a reader attends what was selected for the token before", {"idx", "micro"},
            with_stage("idx", selection_of_the_step_before)),
  };
}

}  // namespace attndiff::mutants
