#include <algorithm>
#include <utility>

#include "reference/contract/error.h"
#include "reference/deepseek_v41/call.h"

namespace attndiff::deepseek_v41 {
namespace {

using FloatRows = std::span<const float>;

/// Pools whole groups of consecutive rows: k, g f32 [groups * ratio, head_dim].
Tensor pool_groups(const Call& call, FloatRows k, FloatRows g, std::int64_t groups) {
  const std::int64_t ratio = call.role().ratio;
  const std::int64_t width = call.config().head_dim;
  Tensor pooled(DType::f32, {groups, width});
  const auto size = static_cast<std::size_t>(ratio * width);
  for (std::int64_t i = 0; i < groups; ++i) {
    const auto at = static_cast<std::size_t>(i) * size;
    call.steps().pool_group(
        k.subspan(at, size), g.subspan(at, size), ratio,
        pooled.as<float>().subspan(static_cast<std::size_t>(i * width), static_cast<std::size_t>(width)));
  }
  return pooled;
}

/// Copies `count` rows starting at row `from` of k and g into the partial group's slots `slot` on.
void store_members(Call& call, const Tensor& k, const Tensor& g, std::int64_t from, std::int64_t count,
                   std::int64_t slot) {
  const std::int64_t width = call.config().head_dim;
  const auto state = call.state().comp_state.as<float>();
  const auto source = static_cast<std::size_t>(from * width);
  const auto size = static_cast<std::size_t>(count * width);
  const auto target = static_cast<std::ptrdiff_t>(slot * width);
  const auto scores = static_cast<std::ptrdiff_t>(call.role().ratio * width);
  const auto rows_k = k.as<float>().subspan(source, size);
  const auto rows_g = g.as<float>().subspan(source, size);
  std::copy(rows_k.begin(), rows_k.end(), state.begin() + target);
  std::copy(rows_g.begin(), rows_g.end(), state.begin() + scores + target);
}

/// The pooled rows of the groups this call completes, before their rounding; undefined when there are none.
Tensor pool(Call& call) {
  const CallShape& shape = call.shape();
  const std::int64_t ratio = call.role().ratio;
  const std::int64_t groups = groups_completed(call.role(), shape);
  const Tensor k = call.product(call.x(), "comp_wkv");
  const Tensor g = call.product(call.x(), "comp_wgate");
  if (shape.prefill()) {
    const std::int64_t whole = groups * ratio;
    store_members(call, k, g, whole, shape.tokens - whole, 0);
    return groups == 0 ? Tensor{} : pool_groups(call, k.as<float>(), g.as<float>(), groups);
  }
  store_members(call, k, g, 0, 1, shape.start_pos % ratio);
  if (groups == 0) {
    return {};
  }
  const auto state = std::as_const(call.state().comp_state).as<float>();
  return pool_groups(call, state.first(state.size() / 2), state.subspan(state.size() / 2), 1);
}

}  // namespace

Latents compress(Call& call) {
  const LayerRole& role = call.role();
  Tensor projected;
  if (role.ratio == 1) {
    projected = call.product(call.x(), "comp_wkv");
  } else {
    projected = pool(call);
    call.publish(kCompState, call.state().comp_state);
  }
  Latents latents;
  if (!projected.defined()) {
    return latents;
  }
  latents.latent = rounded(call.norm(std::move(projected), "comp_norm"));
  call.publish(kLatent, latents.latent);
  for (std::int64_t g = 0; g < latents.latent.value.shape()[0]; ++g) {
    latents.positions.push_back(call.steps().group_position(role, call.shape(), g));
  }
  return latents;
}

void store_latents(Call& call, Latents& latents) {
  const std::int64_t width = call.config().head_dim;
  if (latents.latent.value.defined()) {
    Rounded pre = call.rotated(to_f32(latents.latent.value), latents.positions, 1);
    call.publish(kCompressPre, pre);
    Tensor kv = call.quantised(pre.value, width, call.steps().quantise_latent);
    call.publish(kCompressKv, kv);
    call.state().latents->write(call.shape().start_pos / call.role().ratio, std::as_const(kv).as<Bf16>());
  }
  call.slots().compress_kv = {.value = call.state().latents, .owner = call.role().layer_id};
}

}  // namespace attndiff::deepseek_v41
