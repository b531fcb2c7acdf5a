#pragma once

#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "reference/contract/config.h"
#include "reference/contract/state.h"
#include "reference/contract/tensor.h"

/// For tests: a prefill of n tokens against a prefill of n - 1 and a decode step, for any implementation.
namespace attndiff::device::testing {

/// Runs one layer of a fresh or continuing sequence; a call with start_pos 0 starts a new one.
using ForwardLayer = std::function<LayerResult(std::size_t layer, const CallShape&, const Tensor& x)>;

/// How the last token came out both ways in one layer.
struct LastToken {
  std::int64_t tokens = 0;
  std::size_t layer = 0;
  double difference = 0;    ///< |decode - prefill| / |prefill| of `out`, 2-norms
  bool same_picks = false;  ///< the same compressed positions
};

inline Tensor rows_of(const Tensor& x, std::int64_t first, std::int64_t count) {
  const std::int64_t width = x.shape()[1];
  Tensor rows(DType::bf16, {count, width});
  const auto from =
      x.as<Bf16>().subspan(static_cast<std::size_t>(first * width), static_cast<std::size_t>(count * width));
  std::copy(from.begin(), from.end(), rows.as<Bf16>().begin());
  return rows;
}

/// Compressed positions that the last query attends; `offset` window rows come before them.
inline std::set<std::int32_t> picks_of(const Tensor& idx, std::int64_t offset) {
  const auto columns = static_cast<std::size_t>(idx.shape()[1]);
  std::set<std::int32_t> picks;
  for (const std::int32_t i : idx.as<std::int32_t>().last(columns)) {
    if (i >= offset) {
      picks.insert(static_cast<std::int32_t>(i - offset));
    }
  }
  return picks;
}

/// `inputs`: one x for each layer, bf16 [at least tokens, dim].
inline std::vector<LastToken> compare_last_token(const ModelConfig& config, const std::vector<Tensor>& inputs,
                                                 std::int64_t tokens, const ForwardLayer& forward) {
  const auto run = [&](const CallShape& call) {
    std::vector<LayerResult> results;
    for (std::size_t layer = 0; layer < inputs.size(); ++layer) {
      results.push_back(forward(layer, call, rows_of(inputs[layer], call.start_pos, call.tokens)));
    }
    return results;
  };
  const std::vector<LayerResult> whole = run({.tokens = tokens, .start_pos = 0});
  run({.tokens = tokens - 1, .start_pos = 0});
  const std::vector<LayerResult> step = run({.tokens = 1, .start_pos = tokens - 1});
  std::vector<LastToken> last;
  for (std::size_t layer = 0; layer < inputs.size(); ++layer) {
    const Tensor a = to_f32(rows_of(whole[layer].out, tokens - 1, 1));
    const Tensor b = to_f32(step[layer].out);
    double moved = 0;
    double size = 0;
    for (std::size_t i = 0; i < a.as<float>().size(); ++i) {
      moved += std::pow(static_cast<double>(b.as<float>()[i]) - a.as<float>()[i], 2);
      size += std::pow(static_cast<double>(a.as<float>()[i]), 2);
    }
    last.push_back({.tokens = tokens,
                    .layer = layer,
                    .difference = std::sqrt(moved / size),
                    .same_picks = picks_of(whole[layer].idx, tokens) == picks_of(step[layer].idx, config.window)});
  }
  return last;
}

/// Sums in another order flip a bf16 unit here and there, and a code when it lies at a boundary.
inline constexpr double kSameToken = 0x1p-5;

}  // namespace attndiff::device::testing
