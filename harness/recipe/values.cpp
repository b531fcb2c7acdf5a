#include "harness/recipe/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace attndiff {
namespace {

constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15U;

/// Finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014; Stafford's variant 13).
std::uint64_t finalise(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

/// 64-bit FNV-1a (Fowler, Noll, Vo).
std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

/// Half-width of a uniform distribution about zero with that root mean square.
double half_width(double rms) { return rms * std::sqrt(3.0); }

/// One entry of a token rule's row from a uniform number in [-1, 1) and the row's first one.
double shaped(const TokenRule& rule, double u, double first) {
  constexpr double kTail = 0x1p-10;
  switch (rule.kind) {
    case InputKind::uniform:
      return half_width(rule.size) * u;
    case InputKind::constant:
      return std::copysign(rule.size, first);
    case InputKind::heavy_tailed:
      return rule.size * (u / (1 + kTail - std::fabs(u)));
  }
  return 0;
}

}  // namespace

std::uint64_t tensor_seed(std::uint64_t recipe_seed, std::string_view path) noexcept {
  return finalise(fnv1a(path) + finalise(recipe_seed + kGoldenGamma));
}

ProceduralTensor weight_rule(const Recipe& recipe, const LayerRole& role, const WeightSpec& spec) {
  ProceduralTensor rule{
      .dtype = spec.dtype,
      .shape = spec.shape,
      .seed = tensor_seed(recipe.seed, fmt::format("/layers/{}/weights/{}", role.layer_id, spec.name)),
      .then = {},
  };
  const auto entry = recipe.values.gain.find(spec.name);
  const double gain = entry == recipe.values.gain.end() ? 1.0 : entry->second;
  if (spec.shape.rank() == 2) {
    const auto inputs = static_cast<double>(spec.shape[1]);
    const auto mean = recipe.values.mean.find(spec.name);
    rule.scale = half_width(gain / std::sqrt(inputs));
    rule.offset = mean == recipe.values.mean.end() ? 0.0 : mean->second / inputs;
  } else if (std::string_view(spec.name) == "sink") {
    rule.scale = gain * recipe.values.sink_spread;
    rule.offset = recipe.values.sink_mean;
  } else {
    rule.scale = gain * recipe.values.norm_spread;
    rule.offset = gain;
  }
  return rule;
}

ProceduralTensor input_rule(const Recipe& recipe, const LayerRole& role, const CallShape& call) {
  return {
      .dtype = DType::bf16,
      .shape = {call.tokens, recipe.config.dim},
      .seed = tensor_seed(recipe.seed, fmt::format("/steps/{}/layers/{}/x", call.start_pos, role.layer_id)),
      .scale = half_width(recipe.values.input_rms),
      .offset = recipe.values.input_mean,
      .then = {},
  };
}

ProceduralTensor distinct_inputs_rule(const Recipe& recipe, const LayerRole& role) {
  return {
      .dtype = DType::bf16,
      .shape = {recipe.values.distinct_tokens.value(), recipe.config.dim},
      .seed = tensor_seed(recipe.seed, fmt::format("/distinct_tokens/layers/{}/x", role.layer_id)),
      .scale = half_width(recipe.values.input_rms),
      .offset = recipe.values.input_mean,
      .then = {},
  };
}

std::optional<Tensor> token_inputs(const Recipe& recipe, const LayerRole& role, std::int64_t position) {
  const auto& rules = recipe.values.tokens;
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const TokenRule& r) { return position % r.every == r.at; });
  if (rule == rules.end()) {
    return std::nullopt;
  }
  const ProceduralTensor stream{
      .dtype = DType::f32,
      .shape = {recipe.config.dim},
      .seed = tensor_seed(recipe.seed, fmt::format("/tokens/{}/layers/{}/x", position, role.layer_id)),
      .then = {},
  };
  const Tensor uniform = stream.materialise();
  const auto u = uniform.as<float>();
  Tensor row(DType::bf16, {recipe.config.dim});
  std::transform(u.begin(), u.end(), row.as<Bf16>().begin(),
                 [&](float v) { return to_bf16(static_cast<float>(shaped(*rule, v, u.front()))); });
  return row;
}

ProceduralTensor state_rule(const Recipe& recipe, const LayerRole& role, std::string_view name, DType dtype,
                            const Shape& shape, std::optional<Rounding> then) {
  return {
      .dtype = dtype,
      .shape = shape,
      .seed = tensor_seed(recipe.seed, fmt::format("/initial_state/layers/{}/{}", role.layer_id, name)),
      .scale = half_width(recipe.values.state_rms),
      .offset = 0,
      .then = then,
  };
}

}  // namespace attndiff
