#include "reference/deepseek_v41/forward.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "reference/contract/error.h"
#include "reference/deepseek_v41/call.h"

namespace attndiff::deepseek_v41 {
namespace {

/// The published latent cache, checked against what this layer reads; null where it reads none.
std::shared_ptr<const RowCache> published_latents(const Call& call) {
  const std::int64_t len = compressed_length(call.role(), call.shape());
  if (len == 0) {
    return nullptr;
  }
  const auto& slot = call.slots().compress_kv;
  if (!slot) {
    throw call.refusal("slot compress_kv", "needed, but no layer has written it");
  }
  const RowCache& cache = *slot->value;
  if (cache.width() != call.config().head_dim) {
    throw call.refusal("slot compress_kv", "latents of the wrong width", std::to_string(call.config().head_dim),
                       std::to_string(cache.width()));
  }
  if (cache.capacity() < len) {
    throw call.refusal("slot compress_kv", "too few rows, owned by layer " + std::to_string(slot->owner),
                       std::to_string(len), std::to_string(cache.capacity()));
  }
  return slot->value;
}

/// The published selection, checked; null where there is nothing to select from.
const Tensor* published_selection(const Call& call) {
  if (compressed_length(call.role(), call.shape()) == 0) {
    return nullptr;
  }
  const auto& slot = call.slots().selection;
  if (!slot) {
    throw call.refusal("slot selection", "needed, but no layer has written it");
  }
  const Shape due{call.shape().tokens, selection_columns(call.config(), call.role(), call.shape())};
  if (!(slot->value.shape() == due)) {
    throw call.refusal("slot selection",
                       "a selection of the wrong shape, owned by layer " + std::to_string(slot->owner), due.text(),
                       slot->value.shape().text());
  }
  return &slot->value;
}

Tensor make_idx(const Call& call, const Tensor* selection) {
  const ModelConfig& c = call.config();
  const CallShape& shape = call.shape();
  const auto window = static_cast<std::size_t>(window_columns(c, shape));
  const auto picks = static_cast<std::size_t>(selection_columns(c, call.role(), shape));
  const std::int64_t offset = attended_window_rows(c, shape);
  Tensor idx(DType::i32, {shape.tokens, static_cast<std::int64_t>(window + picks)});
  for (std::int64_t t = 0; t < shape.tokens; ++t) {
    const auto row = idx.as<std::int32_t>().subspan(static_cast<std::size_t>(t) * (window + picks), window + picks);
    call.steps().window_indices(shape, c.window, t, row.first(window));
    for (std::size_t j = 0; j < picks; ++j) {
      row[window + j] =
          call.steps().offset_pick(selection->as<std::int32_t>()[static_cast<std::size_t>(t) * picks + j], offset);
    }
  }
  return idx;
}

/// Every index must name a row or be -1: attention never reads past its rows.
void check_idx(const Call& call, const Tensor& idx, std::int64_t rows) {
  const auto values = idx.as<std::int32_t>();
  const auto bad = std::find_if(values.begin(), values.end(), [&](std::int32_t i) { return i < -1 || i >= rows; });
  if (bad != values.end()) {
    throw call.refusal("idx " + index_text(idx.shape(), bad - values.begin()), "names no row",
                       "-1 to " + std::to_string(rows - 1), std::to_string(*bad));
  }
}

/// The rows stage: window rows, then the first len rows of the cache.
Tensor all_rows(const Call& call, const Tensor& window_rows, const RowCache* latents) {
  const std::int64_t len = compressed_length(call.role(), call.shape());
  Tensor rows(DType::bf16, {window_rows.shape()[0] + len, call.config().head_dim});
  const auto window = window_rows.as<Bf16>();
  std::copy(window.begin(), window.end(), rows.as<Bf16>().begin());
  if (latents != nullptr) {
    latents->read(len, rows.as<Bf16>().subspan(window.size()));
  }
  return rows;
}

Rounded attend(Call& call, const Tensor& q, const reference::AttendedRows& rows, const Tensor& idx) {
  const ModelConfig& c = call.config();
  const auto heads = static_cast<std::size_t>(c.n_heads);
  const auto size = heads * static_cast<std::size_t>(c.head_dim);
  const auto columns = static_cast<std::size_t>(idx.shape()[1]);
  Tensor o(DType::f32, q.shape());
  Tensor lse(DType::f32, {call.shape().tokens, c.n_heads});
  const auto scale = static_cast<float>(std::pow(static_cast<double>(c.head_dim), -0.5));
  call.pool().parallel_for(call.shape().tokens, [&](std::int64_t t) {
    const auto at = static_cast<std::size_t>(t);
    thread_local std::vector<float> query;
    query.resize(size);
    const auto stored = q.as<Bf16>().subspan(at * size, size);
    std::transform(stored.begin(), stored.end(), query.begin(), [](Bf16 v) { return to_float(v); });
    call.steps().sparse_attention({.q = query,
                                   .rows = rows,
                                   .idx = idx.as<std::int32_t>().subspan(at * columns, columns),
                                   .sink = call.vector("sink"),
                                   .scale = scale,
                                   .o = o.as<float>().subspan(at * size, size),
                                   .lse = lse.as<float>().subspan(at * heads, heads)});
  });
  call.publish(kLse, lse);
  Rounded result = rounded(std::move(o));
  call.publish(kO, result);
  return result;
}

}  // namespace

void check_call(const ModelConfig& config, const LayerRole& role, const CallShape& call, const Shape& x) {
  const auto refuse = [&](const std::string& problem, const std::string& expected, const std::string& found) {
    throw Error(ErrorKind::refused, {.file = {},
                                     .object = "layer " + std::to_string(role.layer_id),
                                     .problem = problem,
                                     .expected = expected,
                                     .found = found});
  };
  if (call.start_pos < 0 || call.tokens < 1) {
    refuse("a call needs a position from 0 and at least one token", "start_pos >= 0, tokens >= 1",
           "start_pos " + std::to_string(call.start_pos) + ", tokens " + std::to_string(call.tokens));
  }
  if (!call.prefill() && call.tokens != 1) {
    refuse("a decode call has one token", "1", std::to_string(call.tokens));
  }
  if (call.tokens > config.max_tokens) {
    refuse("more tokens than max_tokens", std::to_string(config.max_tokens), std::to_string(call.tokens));
  }
  if (call.start_pos + call.tokens > config.max_seq) {
    refuse("the call passes max_seq", std::to_string(config.max_seq), std::to_string(call.start_pos + call.tokens));
  }
  if (!(x == Shape{call.tokens, config.dim})) {
    refuse("x has the wrong shape", Shape{call.tokens, config.dim}.text(), x.text());
  }
}

LayerResult attention_any(const Engine& engine, const LayerArgs& args, Observer& observer) {
  check_call(engine.config, args.role, args.call, args.x.shape());
  if (args.call.prefill()) {
    args.state = engine.steps.new_state(engine.config, args.role);
  }
  Call call(engine, args, observer);

  Query query = make_query(call);
  LayerResult result;
  result.window_rows = make_window_rows(call);
  if (args.role.ratio > 0) {
    Latents latents;
    if (args.role.is_kv_source) {
      latents = compress(call);
    }
    if (args.role.is_index_source) {
      run_indexer(call, query.qr, latents);
    }
    if (args.role.is_kv_source) {
      store_latents(call, latents);
    }
  }
  const std::shared_ptr<const RowCache> latents = published_latents(call);
  const std::int64_t len = compressed_length(args.role, args.call);
  const std::int64_t row_count = result.window_rows.shape()[0] + len;

  Tensor rows;
  reference::AttendedRows attended{
      .window = std::as_const(result.window_rows).as<Bf16>(),
      .compressed = latents == nullptr ? std::span<const Bf16>{} : latents->written_rows()};
  if (call.observed(kRows)) {
    rows = all_rows(call, result.window_rows, latents.get());
    call.publish(kRows, rows);
    attended = {.window = std::as_const(rows).as<Bf16>(), .compressed = {}};
  }
  result.idx = make_idx(call, published_selection(call));
  call.publish(kIdx, result.idx);
  check_idx(call, result.idx, row_count);

  result.o = std::move(attend(call, query.q, attended, result.idx).value);
  result.out = project_output(call, result.o);
  result.q = std::move(query.q);
  result.compressed_rows = latents;
  result.compressed_count = len;
  return result;
}

}  // namespace attndiff::deepseek_v41
