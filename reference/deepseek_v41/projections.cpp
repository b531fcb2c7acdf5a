#include <algorithm>
#include <utility>

#include "reference/deepseek_v41/call.h"

namespace attndiff::deepseek_v41 {

Query make_query(Call& call) {
  const ModelConfig& c = call.config();
  Rounded qr = rounded(call.norm(call.product(call.x(), "wq_a"), "q_norm"));
  call.publish(kQr, qr);
  Tensor projected = call.product(to_f32(qr.value), "wq_b");
  Rounded q = call.rotated(std::move(projected).reshaped({call.shape().tokens, c.n_heads, c.head_dim}),
                           call.token_positions(), c.n_heads);
  call.publish(kQ, q);
  return {.qr = std::move(qr.value), .q = std::move(q.value)};
}

Tensor make_window_rows(Call& call) {
  const ModelConfig& c = call.config();
  const CallShape& shape = call.shape();
  Rounded kv_pre = call.rotated(call.norm(call.product(call.x(), "wkv"), "kv_norm"), call.token_positions(), 1);
  call.publish(kKvPre, kv_pre);
  Tensor kv = call.quantised(kv_pre.value, c.head_dim, call.steps().quantise_window_row);
  call.publish(kKv, kv);

  Tensor& ring = call.state().ring;
  const auto width = static_cast<std::size_t>(c.head_dim);
  const std::int64_t first = shape.prefill() ? call.steps().first_kept_token(shape.tokens, c.window) : 0;
  const std::int64_t count = std::min(shape.tokens, c.window);
  for (std::int64_t t = first; t < first + count; ++t) {
    const auto slot = static_cast<std::size_t>(call.steps().ring_slot(shape.start_pos + t, c.window));
    const auto row = kv.as<Bf16>().subspan(static_cast<std::size_t>(t) * width, width);
    std::copy(row.begin(), row.end(), ring.as<Bf16>().subspan(slot * width, width).begin());
  }
  call.publish(kRing, ring);
  if (shape.prefill()) {
    return kv;
  }
  return ring;
}

Tensor project_output(Call& call, const Tensor& o) {
  const ModelConfig& c = call.config();
  const std::int64_t tokens = call.shape().tokens;
  Tensor back = to_f32(o);
  const auto values = back.as<float>();
  const auto width = static_cast<std::size_t>(c.head_dim);
  const auto turned = static_cast<std::size_t>(c.rope_dim);
  call.pool().parallel_for(tokens, [&](std::int64_t t) {
    const reference::RotaryPhase turn = call.phase(call.shape().start_pos + t);
    for (std::int64_t h = 0; h < c.n_heads; ++h) {
      const auto row = static_cast<std::size_t>(t * c.n_heads + h);
      const auto tail = values.subspan((row + 1) * width - turned, turned);
      call.steps().rotate_back(tail, turn);
      std::transform(tail.begin(), tail.end(), tail.begin(), round_bf16);
    }
  });

  const Weight& wo_a = call.weight("wo_a");
  const std::int64_t depth = c.n_heads / c.groups * c.head_dim;
  Tensor og_f(DType::f32, {tokens, c.groups * c.o_rank});
  for (std::int64_t g = 0; g < c.groups; ++g) {
    call.steps().product(call.pool(), {.x = values.subspan(static_cast<std::size_t>(g * depth)),
                                       .x_stride = c.groups * depth,
                                       .tokens = tokens,
                                       .depth = depth,
                                       .weight = wo_a,
                                       .row_begin = g * c.o_rank,
                                       .rows = c.o_rank,
                                       .y = og_f.as<float>().subspan(static_cast<std::size_t>(g * c.o_rank)),
                                       .y_stride = c.groups * c.o_rank});
  }
  Rounded og = rounded(std::move(og_f));
  call.publish(kOg, og);
  Rounded out = rounded(call.product(to_f32(og.value), "wo_b"));
  call.publish(kOut, out);
  return std::move(out.value);
}

}  // namespace attndiff::deepseek_v41
