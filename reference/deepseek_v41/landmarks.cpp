#include "reference/deepseek_v41/landmarks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "reference/compressor.h"
#include "reference/deepseek_v41/stages.h"
#include "reference/window.h"

namespace attndiff::deepseek_v41 {
namespace {

/// Values that share a scale (specification, "Quantisers").
constexpr std::int64_t kFp8Block = 32;
constexpr std::int64_t kFp4E8m0Block = 32;
constexpr std::int64_t kFp4E4m3Block = 16;

Landmark range(std::string text, std::int64_t first, std::int64_t end) {
  return {std::move(text), [first, end](std::int64_t i) { return i >= first && i < end; }};
}

Landmark single(std::string text, std::int64_t index) { return range(std::move(text), index, index + 1); }

std::string numbered(const std::string& what, std::int64_t n) { return what + " " + std::to_string(n); }

/// Everything a stage's axes depend on.
struct Place {
  const ModelConfig& config;
  const LayerRole& role;
  const CallShape& call;

  [[nodiscard]] std::int64_t length() const { return compressed_length(role, call); }
};

AxisNames tokens(const Place& at) {
  AxisNames axis{.one = "token", .many = "tokens"};
  const std::int64_t window = at.config.window;
  if (at.call.prefill() && at.call.tokens > window) {
    axis.landmarks.push_back(range("the first window", 0, window));
    axis.landmarks.push_back(range("everything past the first window", window, at.call.tokens));
    axis.landmarks.push_back(range("the last window, which the ring keeps", at.call.tokens - window, at.call.tokens));
  }
  if (at.call.prefill() && at.role.ratio > 1 && at.call.tokens % at.role.ratio != 0) {
    axis.landmarks.push_back(
        range("the in-progress group", at.call.tokens - at.call.tokens % at.role.ratio, at.call.tokens));
  }
  return axis;
}

AxisNames columns(std::int64_t block = 0) {
  return {.one = "column",
          .many = "columns",
          .landmarks = {},
          .labels = {},
          .block = block,
          .block_name = block == 0 ? "" : "quantiser block"};
}

/// The innermost axis of a row whose last `rope_dim` of `width` entries were rotated in adjacent pairs.
AxisNames rotated_columns(const Place& at, std::int64_t width, std::int64_t block = 0) {
  AxisNames axis = columns(block);
  const std::int64_t tail = width - at.config.rope_dim;
  axis.landmarks.push_back(range("the rotated tail", tail, width));
  axis.landmarks.push_back(range("everything before the rotated tail", 0, tail));
  for (const auto& [text, parity] :
       {std::pair{"the even members of the rotated pairs", 0}, std::pair{"the odd members of the rotated pairs", 1}}) {
    axis.landmarks.push_back(
        {text, [tail, odd = parity](std::int64_t i) { return i >= tail && (i - tail) % 2 == odd; }});
  }
  axis.landmarks.push_back(range("the first half of the rotated tail", tail, tail + at.config.rope_dim / 2));
  axis.landmarks.push_back(range("the second half of the rotated tail", tail + at.config.rope_dim / 2, width));
  return axis;
}

AxisNames heads(const Place& at) {
  AxisNames axis{.one = "head", .many = "heads"};
  const std::int64_t per_group = at.config.n_heads / at.config.groups;
  for (std::int64_t g = 0; g < at.config.groups; ++g) {
    axis.landmarks.push_back(range(numbered("output group", g), g * per_group, (g + 1) * per_group));
  }
  return axis;
}

AxisNames output_group_columns(const Place& at) {
  AxisNames axis = columns();
  for (std::int64_t g = 0; g < at.config.groups; ++g) {
    axis.landmarks.push_back(range(numbered("output group", g), g * at.config.o_rank, (g + 1) * at.config.o_rank));
  }
  return axis;
}

/// Slots of the ring as the call leaves it, shifted by where the ring starts on the axis.
std::vector<Landmark> slots(const Place& at) {
  const std::int64_t window = at.config.window;
  const std::int64_t last = at.call.start_pos + at.call.tokens - 1;
  const std::int64_t newest = reference::ring_slot(last, window);
  std::vector<Landmark> marks{single("the newest token's slot", newest)};
  if (last < window) {
    marks.push_back(single("the oldest token's slot", 0));
    marks.push_back(range("the slots never written", last + 1, window));
    marks.push_back(range("the slots written so far", 0, last + 1));
    return marks;
  }
  marks.push_back(single("the oldest token's slot", reference::ring_slot(last + 1, window)));
  marks.push_back(range("the slots written since the last wrap", 0, newest + 1));
  marks.push_back(range("the slots from before the last wrap", newest + 1, window));
  return marks;
}

/// Compressed positions `base`, `base` + 1, ... from index `first` to `end` of an axis.
std::vector<Landmark> positions(std::int64_t first, std::int64_t end, std::int64_t base) {
  if (end <= first) {
    return {};
  }
  std::vector<Landmark> marks{single("the last compressed position", end - 1)};
  if (end - first < 2) {
    return marks;
  }
  marks.push_back(single("the first compressed position", first));
  for (const auto& [text, parity] :
       {std::pair{"even compressed positions", 0}, std::pair{"odd compressed positions", 1}}) {
    marks.push_back({text, [first, end, base, odd = parity](std::int64_t i) {
                       return i >= first && i < end && (base + i - first) % 2 == odd;
                     }});
  }
  return marks;
}

AxisNames groups(const Place& at) {
  const std::int64_t first = at.call.start_pos / at.role.ratio;
  return {.one = "group", .many = "groups", .landmarks = positions(0, at.length() - first, first)};
}

AxisNames ring_slots(const Place& at) { return {.one = "slot", .many = "slots", .landmarks = slots(at)}; }

AxisNames partial_slots(const Place& at) {
  AxisNames axis{.one = "group slot", .many = "group slots"};
  const std::int64_t after = at.call.start_pos + at.call.tokens;
  const std::int64_t held = after % at.role.ratio;
  axis.landmarks.push_back(single("the newest token's", (after - 1) % at.role.ratio));
  axis.landmarks.push_back(range("the in-progress group", 0, held));
  axis.landmarks.push_back(range("the slots no token of the in-progress group holds", held, at.role.ratio));
  return axis;
}

AxisNames attended_rows(const Place& at) {
  AxisNames axis{.one = "row", .many = "rows"};
  const std::int64_t window_rows = attended_window_rows(at.config, at.call);
  const std::int64_t end = window_rows + at.length();
  if (at.length() > 0) {
    axis.landmarks.push_back(range("the window rows", 0, window_rows));
    axis.landmarks.push_back(range("the compressed rows", window_rows, end));
  }
  if (!at.call.prefill()) {
    for (Landmark& mark : slots(at)) {
      axis.landmarks.push_back(std::move(mark));
    }
  }
  for (Landmark& mark : positions(window_rows, end, 0)) {
    axis.landmarks.push_back(std::move(mark));
  }
  return axis;
}

AxisNames scored_positions(const Place& at) {
  AxisNames axis{.one = "position", .many = "positions", .landmarks = positions(0, at.length(), 0)};
  axis.block = at.config.cand_block;
  axis.block_name = "candidate block";
  return axis;
}

AxisNames index_entries(const Place& at) {
  AxisNames axis{.one = "entry", .many = "entries"};
  const std::int64_t window = window_columns(at.config, at.call);
  const std::int64_t end = window + selection_columns(at.config, at.role, at.call);
  axis.landmarks.push_back(range("the window entries", 0, window));
  axis.landmarks.push_back(range("the selection entries", window, end));
  if (!at.call.prefill()) {
    const std::int64_t newest = reference::ring_slot(at.call.start_pos, window);
    axis.landmarks.push_back(single("the newest token's entry", window - 1));
    axis.landmarks.push_back(single("the oldest slot's entry", 0));
    axis.landmarks.push_back(range("the window entries from the wrap of the ring on", window - 1 - newest, window));
    axis.landmarks.push_back(range("the window entries up to the wrap of the ring", 0, window - 1 - newest));
  }
  return axis;
}

AxisNames picks() { return {.one = "pick", .many = "picks"}; }
AxisNames index_heads() { return {.one = "index head", .many = "index heads"}; }

/// Positions by what query `t` sees, in prefill, where that differs from query to query.
std::vector<Region> by_query(const Place& at, bool blocks) {
  if (!at.call.prefill() || at.call.tokens < 2) {
    return {};
  }
  const auto seen = [role = at.role, call = at.call](std::int64_t t) {
    return reference::visible_positions(role, call, t);
  };
  std::vector<Region> regions;
  using Index = std::span<const std::int64_t>;
  if (at.role.ratio > 1) {
    regions.push_back({"the in-progress group of each query", [seen, ratio = at.role.ratio](Index i) {
                         return i[1] == seen(i[0]) && (i[0] + 1) % ratio != 0;
                       }});
  }
  regions.push_back({"the newest visible position of each query", [seen](Index i) { return i[1] == seen(i[0]) - 1; }});
  if (blocks && at.config.cand_block > 1) {
    regions.push_back({"the newest candidate block of each query", [seen, block = at.config.cand_block](Index i) {
                         return seen(i[0]) > 0 && i[1] / block == (seen(i[0]) - 1) / block;
                       }});
  }
  regions.push_back({"the positions each query does not see", [seen](Index i) { return i[1] >= seen(i[0]); }});
  regions.push_back({"the positions each query sees", [seen](Index i) { return i[1] < seen(i[0]); }});
  return regions;
}

std::vector<Region> own_tokens(const Place& at) {
  if (!at.call.prefill() || at.call.tokens < 2) {
    return {};
  }
  const std::int64_t last = window_columns(at.config, at.call) - 1;
  return {{"the entry of each query's own token",
           [last](std::span<const std::int64_t> i) { return i[1] == std::min(i[0], last); }}};
}

}  // namespace

Landmarks landmarks(const StageInfo& stage, const ModelConfig& config, const LayerRole& role, const CallShape& call) {
  if (!stage.shape(config, role, call)) {
    return {};
  }
  const Place at{.config = config, .role = role, .call = call};
  const std::int64_t head = config.head_dim;
  const std::int64_t key = config.index_head_dim;
  switch (stage.id) {
    case kQr:
    case kOut:
      return {{tokens(at), columns()}, {}};
    case kQ:
    case kO:
      return {{tokens(at), heads(at), rotated_columns(at, head)}, {}};
    case kKvPre:
    case kKv:
      return {{tokens(at), rotated_columns(at, head, kFp8Block)}, {}};
    case kRing:
      return {{ring_slots(at), rotated_columns(at, head, kFp8Block)}, {}};
    case kCompState:
      return {
          {{.one = "part", .many = "parts", .landmarks = {}, .labels = {"k", "gate"}}, partial_slots(at), columns()},
          {}};
    case kLatent:
      return {{groups(at), columns()}, {}};
    case kIndexKPre:
    case kIndexK:
      return {{groups(at), rotated_columns(at, key, kFp4E8m0Block)}, {}};
    case kIndexQPre:
    case kIndexQ:
      return {{tokens(at), index_heads(), rotated_columns(at, key, kFp4E8m0Block)}, {}};
    case kIndexW:
      return {{tokens(at), index_heads()}, {}};
    case kIndexScore:
    case kCandidates:
      return {{tokens(at), scored_positions(at)}, by_query(at, stage.id == kCandidates)};
    case kSelection:
      return {{tokens(at), picks()}, {}};
    case kCompressPre:
    case kCompressKv:
      return {{groups(at), rotated_columns(at, head, kFp4E4m3Block)}, {}};
    case kRows:
      return {{attended_rows(at), rotated_columns(at, head, kFp4E4m3Block)}, {}};
    case kIdx:
      return {{tokens(at), index_entries(at)}, own_tokens(at)};
    case kLse:
      return {{tokens(at), heads(at)}, {}};
    case kOg:
      return {{tokens(at), output_group_columns(at)}, {}};
    default:
      return {};
  }
}

}  // namespace attndiff::deepseek_v41
