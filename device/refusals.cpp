#include "device/refusals.h"

#include <algorithm>
#include <limits>
#include <string>

#include "device/workspace.h"
#include "kernels/index_scores.h"
#include "kernels/sparse_attention.h"
#include "reference/contract/error.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff::device {
namespace {

Error refusal(const LayerRole& role, const std::string& object, const std::string& problem,
              const std::string& expected = {}, const std::string& found = {}) {
  return {ErrorKind::refused,
          {.file = {},
           .object = "layer " + std::to_string(role.layer_id) + ": " + object,
           .problem = problem,
           .expected = expected,
           .found = found}};
}

[[noreturn]] void unwritten(const LayerRole& role, const char* slot) {
  throw refusal(role, std::string("slot ") + slot, "needed, but no layer has written it");
}

void check_cache(const LayerRole& role, const char* name, const std::optional<CacheSlotFacts>& slot, std::int64_t len,
                 std::int64_t width) {
  if (!slot) {
    unwritten(role, name);
  }
  const std::string object = std::string("slot ") + name;
  if (slot->width != width) {
    throw refusal(role, object, "rows of the wrong width", std::to_string(width), std::to_string(slot->width));
  }
  if (slot->rows < len) {
    throw refusal(role, object, "too few rows, owned by layer " + std::to_string(slot->owner), std::to_string(len),
                  std::to_string(slot->rows));
  }
}

void check_tensor(const LayerRole& role, const char* name, const std::optional<TensorSlotFacts>& slot,
                  const Shape& due) {
  if (!slot) {
    unwritten(role, name);
  }
  if (!(slot->shape == due)) {
    throw refusal(role, std::string("slot ") + name, "the wrong shape, owned by layer " + std::to_string(slot->owner),
                  due.text(), slot->shape.text());
  }
}

void check_indexer_slots(const ModelConfig& config, const LayerRole& role, const CallShape& call, std::int64_t len,
                         const SlotFacts& slots) {
  const bool publishes_keys =
      role.is_kv_source && (deepseek_v41::groups_completed(role, call) > 0 || config.index_keys == IndexKeyRule::own);
  if (!publishes_keys) {
    check_cache(role, "index_k", slots.index_k, len, config.index_head_dim);
  }
  if (role.uses_candidates) {
    check_tensor(role, "candidates", slots.candidates, Shape{call.tokens, len});
  }
}

void require(bool holds, const std::string& problem, const std::string& expected, const std::string& found) {
  if (!holds) {
    throw Error(
        ErrorKind::refused,
        {.file = {}, .object = "CUDA implementation", .problem = problem, .expected = expected, .found = found});
  }
}

void require_shared(const char* kernel, std::size_t needed, std::size_t available) {
  require(needed <= available, std::string(kernel) + " does not fit the GPU's shared memory",
          "at most " + std::to_string(available) + " bytes a block", std::to_string(needed));
}

void check_dimensions(const ModelConfig& c) {
  constexpr std::int64_t kBlock = 32;
  constexpr std::int64_t kMostEntry = std::numeric_limits<std::int32_t>::max();
  require(c.head_dim % kBlock == 0, "unsupported head_dim", "a multiple of 32", std::to_string(c.head_dim));
  require(c.rope_dim % 2 == 0 && c.rope_dim <= c.head_dim, "unsupported rope_dim", "even, at most head_dim",
          std::to_string(c.rope_dim));
  require(c.window + c.max_seq <= kMostEntry, "positions pass the range of an index",
          "window + max_seq <= " + std::to_string(kMostEntry), std::to_string(c.window + c.max_seq));
  require(c.max_tokens <= kMostEntry / std::max<std::int64_t>(c.n_heads, 1), "a call has too many query rows",
          "max_tokens * n_heads <= " + std::to_string(kMostEntry), std::to_string(c.max_tokens));
}

void check_quantised_depths(const ModelConfig& c, const LayerRole& role) {
  require(role.ratio >= 0, "unsupported ratio", ">= 0", std::to_string(role.ratio));
  if (!role.is_index_source) {
    return;
  }
  constexpr std::int64_t kBlock = 32;
  require(c.index_head_dim % kBlock == 0, "unsupported index_head_dim", "a multiple of 32",
          std::to_string(c.index_head_dim));
  require(c.rope_dim <= c.index_head_dim, "unsupported rope_dim", "at most index_head_dim", std::to_string(c.rope_dim));
}

}  // namespace

void check_slots(const ModelConfig& config, const LayerRole& role, const CallShape& call, const SlotFacts& slots) {
  const std::int64_t len = deepseek_v41::compressed_length(role, call);
  if (len == 0) {
    return;
  }
  if (!role.is_kv_source) {
    check_cache(role, "compress_kv", slots.compress_kv, len, config.head_dim);
  }
  if (role.is_index_source) {
    check_indexer_slots(config, role, call, len, slots);
    return;
  }
  const Shape due{call.tokens, deepseek_v41::selection_columns(config, role, call)};
  if (slots.selection && slots.selection->shape.rank() == 2 &&
      slots.selection->shape[1] > config.window + config.index_topk) {
    throw refusal(role, "slot selection", "wider than window + index_topk",
                  std::to_string(config.window + config.index_topk), std::to_string(slots.selection->shape[1]));
  }
  check_tensor(role, "selection", slots.selection, due);
}

void check_continues(const LayerRole& role, const CallShape& call, std::int64_t next) {
  if (!call.prefill() && call.start_pos != next) {
    throw refusal(role, "start_pos", "does not continue the sequence", std::to_string(next),
                  std::to_string(call.start_pos));
  }
}

void check_entries(const LayerRole& role, const char* what, std::span<const std::int32_t> entries, const Shape& shape,
                   std::int64_t limit) {
  const auto bad = std::find_if(entries.begin(), entries.end(), [&](std::int32_t i) { return i < -1 || i >= limit; });
  if (bad != entries.end()) {
    throw refusal(role, what + (" " + index_text(shape, bad - entries.begin())), "names no row",
                  "-1 to " + std::to_string(limit - 1), std::to_string(*bad));
  }
}

void check_supported(const ModelConfig& config, std::span<const LayerRole> layers, std::size_t shared_bytes) {
  check_dimensions(config);
  for (const LayerRole& role : layers) {
    check_quantised_depths(config, role);
    if (role.is_index_source) {
      require_shared("index scoring", kernels::index_score_shared_bytes(config.index_heads, config.index_head_dim),
                     shared_bytes);
    }
  }
  const auto wrong = violations(config, layers);
  if (!wrong.empty()) {
    throw Error(ErrorKind::input, wrong.front());
  }
  const std::int64_t columns = most_columns(config, layers);
  for (const auto form :
       {kernels::AttentionForm::plain, kernels::AttentionForm::wide, kernels::AttentionForm::narrow}) {
    if (kernels::attention_supports(form, config.head_dim)) {
      require_shared("sparse attention", kernels::attention_shared_bytes(form, config.head_dim, columns), shared_bytes);
    }
  }
}

}  // namespace attndiff::device
