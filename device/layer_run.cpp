#include "device/layer_run.h"

#include <cmath>
#include <utility>

#include "device/queue.h"
#include "device/refusals.h"
#include "reference/deepseek_v41/stages.h"
#include "reference/window.h"

namespace attndiff::device {

using namespace deepseek_v41;  // NOLINT(google-build-using-namespace): the stages' names

namespace {

std::int64_t padding_of(const Runtime& runtime, const LayerRole& role, const CallShape& call) {
  // Before the first group nothing is selected, and no layer needs to have written a selection to pad.
  if (call.prefill() || !runtime.options().padded_decode || compressed_length(role, call) == 0) {
    return 0;
  }
  return padded_selection_columns(runtime.config(), role) - selection_columns(runtime.config(), role, call);
}

}  // namespace

LayerRun::LayerRun(Runtime& runtime, DeviceSequence& sequence, std::size_t layer, const CallShape& call,
                   std::int64_t sequence_id, Observer& observer)
    : runtime_(runtime),
      sequence_(sequence),
      config_(runtime.config()),
      role_(runtime.layers()[layer]),
      weights_(runtime.weights(layer)),
      state_(sequence.state(layer)),
      w_(runtime.workspace()),
      shape_(call),
      call_{.config = config_, .role = role_, .shape = call, .sequence = sequence_id},
      tap_(call_, runtime.family().stages, observer, runtime.gpu().ordinal, runtime.stream()),
      length_(compressed_length(role_, call)),
      groups_(groups_completed(role_, call)),
      columns_(window_columns(config_, call) + selection_columns(config_, role_, call)),
      padding_(padding_of(runtime, role_, call)) {}

LayerViews LayerRun::execute(const Tensor& x) {
  prepare();
  copy_to_device(w_.x.data(), x.raw(), x.bytes(), runtime_.stream());
  make_query();
  make_window_rows();
  if (role_.is_kv_source) {
    compress();
  }
  if (role_.is_index_source) {
    if (role_.is_kv_source) {
      make_index_keys();
    }
    if (length_ > 0) {
      make_index_queries();
      score_and_select();
    } else {
      publish_selection(Tensor(DType::i32, {shape_.tokens, 0}));
    }
  }
  if (role_.is_kv_source) {
    store_latents();
  }
  const Attended rows = attended_rows();
  build_idx();
  attend(rows);
  project_output();
  return views(rows);
}

void LayerRun::prepare() {
  if (runtime_.options().poison) {
    w_.poison(runtime_.stream());
  }
  if (shape_.prefill()) {
    state_.reset(runtime_.launches(), runtime_.stream());
  }
  kernels::StepScalars step{.position = shape_.start_pos,
                            .ring_slot = reference::ring_slot(shape_.start_pos, config_.window)};
  RotaryTable& table = runtime_.rotary(role_.ratio);
  table.require(shape_.start_pos, shape_.tokens, runtime_.pool(), runtime_.stream());
  if (role_.is_kv_source && !shape_.prefill()) {
    step.partial_slot = shape_.start_pos % role_.ratio;
    if (groups_ > 0) {
      step.group_position = shape_.start_pos + 1 - role_.ratio;
      table.require(step.group_position, 1, runtime_.pool(), runtime_.stream());
    }
  }
  runtime_.set_step(step);
}

void LayerRun::make_query() {
  auto* qr = w_.qr.as<Bf16>();
  linear(w_.x.as<Bf16>(), "wq_a", qr, shape_.tokens);
  norm(qr, shape_.tokens, "q_norm");
  tap_.offer(kQr, qr);
  auto* q = w_.q.as<Bf16>();
  linear(qr, "wq_b", q, shape_.tokens);
  rotate(q, q, shape_.tokens * config_.n_heads, config_.n_heads, config_.head_dim);
  tap_.offer(kQ, q);
}

void LayerRun::make_window_rows() {
  auto* kv = w_.kv.as<Bf16>();
  linear(w_.x.as<Bf16>(), "wkv", kv, shape_.tokens);
  norm(kv, shape_.tokens, "kv_norm");
  rotate(kv, kv, shape_.tokens, 1, config_.head_dim);
  tap_.offer(kKvPre, kv);
  quantise(kv, shape_.tokens * config_.head_dim, kernels::RoundTrip::fp8);
  tap_.offer(kKv, kv);
  runtime_.launches().ring_write({.kv = kv,
                                  .ring = state_.ring(),
                                  .step = runtime_.step(),
                                  .tokens = shape_.tokens,
                                  .window = config_.window,
                                  .width = config_.head_dim},
                                 runtime_.stream());
  tap_.offer(kRing, state_.ring());
}

LayerRun::Attended LayerRun::attended_rows() {
  Attended rows{.window = shape_.prefill() ? w_.kv.as<Bf16>() : state_.ring(), .compressed = nullptr};
  if (length_ > 0) {
    rows.compressed = sequence_.slots().compress_kv->value->row(0);
  }
  if (!tap_.wanted(kRows)) {
    return rows;
  }
  const std::int64_t window = attended_window_rows(config_, shape_);
  const auto row_bytes = static_cast<std::size_t>(config_.head_dim) * sizeof(Bf16);
  auto* all = sequence_.scratch(kRows, static_cast<std::size_t>(window + length_) * row_bytes).as<Bf16>();
  Bf16* compressed = all + window * config_.head_dim;
  copy_on_device(all, rows.window, static_cast<std::size_t>(window) * row_bytes, runtime_.stream());
  copy_on_device(compressed, rows.compressed, static_cast<std::size_t>(length_) * row_bytes, runtime_.stream());
  tap_.offer(kRows, all);
  return {.window = all, .compressed = compressed};
}

void LayerRun::build_idx() {
  auto* idx = w_.idx.as<std::int32_t>();
  runtime_.launches().index_build({.selection = sequence_.selection().picks.as<std::int32_t>(),
                                   .idx = idx,
                                   .step = runtime_.step(),
                                   .tokens = shape_.tokens,
                                   .window = config_.window,
                                   .window_columns = window_columns(config_, shape_),
                                   .selection_columns = selection_width(),
                                   .offset = attended_window_rows(config_, shape_),
                                   .prefill = shape_.prefill()},
                                  runtime_.stream());
  tap_.offer(kIdx, idx);
  if (tap_.replaceable(kIdx)) {
    const Tensor replaced = download(view(kIdx, idx), runtime_.queue());
    check_entries(role_, "idx", replaced.as<std::int32_t>(), replaced.shape(),
                  attended_window_rows(config_, shape_) + length_);
  }
}

void LayerRun::attend(const Attended& rows) {
  const auto scale = static_cast<float>(std::pow(static_cast<double>(config_.head_dim), -0.5));
  runtime_.launches().sparse_attention({.q = w_.q.as<Bf16>(),
                                        .window_rows = rows.window,
                                        .compressed_rows = rows.compressed,
                                        .idx = w_.idx.as<std::int32_t>(),
                                        .sink = weights_.f32("sink"),
                                        .o = w_.o.as<Bf16>(),
                                        .lse = w_.lse.as<float>(),
                                        .tokens = shape_.tokens,
                                        .heads = config_.n_heads,
                                        .head_dim = config_.head_dim,
                                        .columns = columns_ + padding_,
                                        .window_count = attended_window_rows(config_, shape_),
                                        .scale = scale},
                                       runtime_.attention_form(shape_.tokens), runtime_.stream());
  tap_.offer(kLse, w_.lse.data());
  tap_.offer(kO, w_.o.data());
}

void LayerRun::project_output() {
  auto* rotated = w_.o_rotated.as<Bf16>();
  rotate(w_.o.as<Bf16>(), rotated, shape_.tokens * config_.n_heads, config_.n_heads, config_.head_dim, true);
  auto* og = w_.og.as<Bf16>();
  linear(rotated, "wo_a", og, shape_.tokens, config_.groups);
  tap_.offer(kOg, og);
  auto* out = w_.out.as<Bf16>();
  linear(og, "wo_b", out, shape_.tokens);
  tap_.offer(kOut, out);
}

void LayerRun::rotate(const Bf16* from, Bf16* to, std::int64_t rows, std::int64_t per_position, std::int64_t width,
                      bool inverse) {
  const RotaryTable& table = runtime_.rotary(role_.ratio);
  runtime_.launches().rotary(
      {.from = from,
       .to = to,
       .cos = table.cos(),
       .sin = table.sin(),
       .first = &runtime_.step()->position,
       .stride = 1,
       .rows = rows,
       .rows_per_position = per_position,
       .width = width,
       .rope_dim = config_.rope_dim,
       .direction = inverse ? kernels::RotaryDirection::inverse : kernels::RotaryDirection::forward},
      runtime_.stream());
}

void LayerRun::norm(Bf16* rows, std::int64_t count, const char* weight) {
  runtime_.launches().rms_norm({.x = rows,
                                .w = weights_.f32(weight),
                                .y = rows,
                                .rows = count,
                                .width = weights_.at(weight).outputs,
                                .eps = static_cast<float>(config_.eps)},
                               runtime_.stream());
}

void LayerRun::linear(const Bf16* x, const char* weight, Bf16* y, std::int64_t tokens, std::int64_t batch) {
  runtime_.linear({.x = x, .weight = weights_.at(weight), .y = y, .tokens = tokens, .batch = batch});
}

void LayerRun::quantise(Bf16* rows, std::int64_t count, kernels::RoundTrip round_trip) {
  runtime_.launches().quantize({.from = rows, .to = rows, .count = count, .kind = round_trip}, runtime_.stream());
}

std::int64_t LayerRun::selection_width() const noexcept { return selection_columns(config_, role_, shape_) + padding_; }

TensorView LayerRun::view(int stage, void* data) const {
  const Shape extents = tap_.shape(stage);
  return {.dtype = runtime_.family().stages[static_cast<std::size_t>(stage)].dtype,
          .shape = extents,
          .strides = extents.strides(),
          .data = data,
          .place = {.kind = Place::Kind::cuda, .device = runtime_.gpu().ordinal}};
}

LayerViews LayerRun::views(const Attended& rows) const {
  LayerViews v;
  v.q = view(kQ, w_.q.data());
  v.idx = view(kIdx, w_.idx.data());
  v.o = view(kO, w_.o.data());
  v.out = view(kOut, w_.out.data());
  v.window_rows = v.q;
  v.window_rows.shape = Shape{attended_window_rows(config_, shape_), config_.head_dim};
  v.window_rows.strides = v.window_rows.shape.strides();
  v.window_rows.data = const_cast<Bf16*>(rows.window);
  v.compressed_rows = v.window_rows;
  v.compressed_rows.shape = Shape{length_, config_.head_dim};
  v.compressed_rows.strides = v.compressed_rows.shape.strides();
  v.compressed_rows.data = const_cast<Bf16*>(rows.compressed);
  v.compressed_count = length_;
  return v;
}

}  // namespace attndiff::device
