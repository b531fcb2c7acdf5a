#include "reference/deepseek_v41/call.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/contract/bfloat16.h"
#include "reference/contract/error.h"

namespace attndiff::deepseek_v41 {

Call::Call(const Engine& engine, const LayerArgs& args, Observer& observer)
    : engine_(engine),
      args_(args),
      observer_(observer),
      call_{.config = engine.config, .role = args.role, .shape = args.call, .sequence = args.sequence},
      frequencies_(engine.steps.frequencies(engine.config, args.role.ratio)),
      x_(to_f32(args.x)) {
  for (const StageInfo& stage : family().stages) {
    if (stage.shape(engine.config, args.role, args.call)) {
      interests_[static_cast<std::size_t>(stage.id)] = observer.interest(call_, stage);
    }
  }
}

void Call::publish(StageId id, Tensor& value, Tensor* unrounded) {
  const StageInfo& stage = family().stages[id];
  const auto due = stage.shape(config(), role(), shape());
  if (!due || !(*due == value.shape()) || value.dtype() != stage.dtype) {
    throw Error(ErrorKind::internal, {.file = {},
                                      .object = "stage " + std::string(stage.name),
                                      .problem = "the reference made another tensor than the stage table says",
                                      .expected = due ? due->text() : "none",
                                      .found = value.shape().text()});
  }
  const Interest interest = interests_[id];
  if (interest == Interest::nothing) {
    return;
  }
  StageView view{.stage = stage, .value = value.view(), .unrounded = {}};
  if (unrounded != nullptr && wants(interest, Interest::unrounded)) {
    view.unrounded = unrounded->view();
  }
  observer_.on_stage(call_, view, Stream{});
}

Tensor Call::product(const Tensor& x, const char* name) const {
  const Weight& w = weight(name);
  const std::int64_t depth = w.values.shape()[1];
  const std::int64_t rows = w.values.shape()[0];
  const std::int64_t tokens = x.count() / depth;
  Tensor y(DType::f32, {tokens, rows});
  const Tensor* input = &x;
  Tensor activation;
  if (w.quantised()) {
    activation = x;
    const auto values = activation.as<float>();
    for (std::int64_t t = 0; t < tokens; ++t) {
      steps().quantise_activation(values.subspan(static_cast<std::size_t>(t * depth), static_cast<std::size_t>(depth)));
    }
    input = &activation;
  }
  steps().product(pool(), {.x = input->as<float>(),
                           .x_stride = depth,
                           .tokens = tokens,
                           .depth = depth,
                           .weight = w,
                           .row_begin = 0,
                           .rows = rows,
                           .y = y.as<float>(),
                           .y_stride = rows});
  return y;
}

Tensor Call::norm(Tensor x, const char* name, bool round_input) const {
  const auto w = vector(name);
  const auto values = x.as<float>();
  if (round_input) {
    std::transform(values.begin(), values.end(), values.begin(), round_bf16);
  }
  std::vector<float> row(w.size());
  for (std::size_t begin = 0; begin < values.size(); begin += w.size()) {
    const auto part = values.subspan(begin, w.size());
    steps().rms_norm(part, w, static_cast<float>(config().eps), row);
    std::copy(row.begin(), row.end(), part.begin());
  }
  return x;
}

std::vector<std::int64_t> Call::token_positions() const {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(shape().tokens));
  for (std::int64_t t = 0; t < shape().tokens; ++t) {
    positions[static_cast<std::size_t>(t)] = shape().start_pos + t;
  }
  return positions;
}

reference::RotaryPhase Call::phase(std::int64_t position) const {
  reference::RotaryPhase p;
  for (const float f : frequencies_) {
    const double angle = steps().angle(f, position);
    p.cos.push_back(static_cast<float>(std::cos(angle)));
    p.sin.push_back(static_cast<float>(std::sin(angle)));
  }
  return p;
}

Rounded Call::rotated(Tensor x, std::span<const std::int64_t> positions, std::int64_t per) const {
  Rounded result = rounded(std::move(x));
  const auto values = result.value.as<Bf16>();
  const auto floats = result.unrounded.as<float>();
  const auto turned = static_cast<std::size_t>(config().rope_dim);
  const std::size_t width = values.size() / (positions.size() * static_cast<std::size_t>(per));
  pool().parallel_for(static_cast<std::int64_t>(positions.size()), [&](std::int64_t i) {
    const reference::RotaryPhase turn = phase(positions[static_cast<std::size_t>(i)]);
    for (std::int64_t r = i * per; r < (i + 1) * per; ++r) {
      const std::size_t begin = (static_cast<std::size_t>(r) + 1) * width - turned;
      const auto tail = floats.subspan(begin, turned);
      std::transform(tail.begin(), tail.end(), tail.begin(), round_bf16);
      steps().rotate(tail, turn);
      std::transform(tail.begin(), tail.end(), values.begin() + static_cast<std::ptrdiff_t>(begin),
                     [](float v) { return to_bf16(v); });
    }
  });
  return result;
}

Tensor Call::quantised(const Tensor& t, std::int64_t width,
                       const std::function<void(std::span<float>)>& round_trip) const {
  Tensor floats = to_f32(t);
  const auto values = floats.as<float>();
  pool().parallel_for(t.count() / width, [&](std::int64_t row) {
    round_trip(values.subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width)));
  });
  return to_bf16(floats);
}

Error Call::refusal(const std::string& object, const std::string& problem, const std::string& expected,
                    const std::string& found) const {
  return {ErrorKind::refused,
          {.file = {},
           .object = "layer " + std::to_string(role().layer_id) + ": " + object,
           .problem = problem,
           .expected = expected,
           .found = found}};
}

Rounded rounded(Tensor unrounded) {
  Tensor value = to_bf16(unrounded);
  return {.value = std::move(value), .unrounded = std::move(unrounded)};
}

}  // namespace attndiff::deepseek_v41
