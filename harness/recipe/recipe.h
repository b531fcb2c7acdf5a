#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/fixture/reader.h"
#include "reference/contract/config.h"

namespace attndiff {

/// Format 1 numbers the layers and the steps of a fixture with four digits.
inline constexpr std::int64_t kMostFixtureMembers = 10000;

/// How a layer's weights wq_a, wq_b, wkv, wo_b and idx_wq_b are stored.
enum class WeightFormat : std::uint8_t {
  bf16,  ///< as rules, a few hundred bytes each
  e4m3,  ///< as codes with block scales, a byte per element: format 1 has no rule for them
};

struct RecipeLayer {
  LayerRole role;
  WeightFormat weights = WeightFormat::bf16;
};

/// How large the values are. All are uniform; a root mean square of r means the range +-r * sqrt(3).
struct ValueRules {
  double input_rms = 1.0;    ///< of x
  double norm_spread = 0.2;  ///< norm weights lie within 1 +- this
  double sink_spread = 2.0;  ///< sinks lie within +- this
  double state_rms = 1.0;    ///< of declared window rows, latents, index keys and partial groups
  /// A weight [out, K] has the root mean square gain / sqrt(K), so that a gain of 1, the default, keeps the variance.
  std::map<std::string, double, std::less<>> gain;
  /// The token at position p has the input row of position p % distinct_tokens: repeated tokens make equal scores.
  /// Such inputs are bytes, not rules.
  std::optional<std::int64_t> distinct_tokens;
};

/// layer_id that owns each slot when the first step starts in mid-sequence; by default what history would have left.
struct SlotOwners {
  std::optional<std::int64_t> compress_kv;
  std::optional<std::int64_t> index_k;
};

/// What `attndiff generate` makes a fixture from: docs of the keys are in fixtures/recipes/README.md.
struct Recipe {
  std::string note;
  std::string must_cover;  ///< counters of harness/run/coverage.h, separated by commas
  std::uint64_t seed = 0;
  ModelConfig config;
  std::vector<RecipeLayer> layers;
  std::vector<FixtureStep> steps;
  ValueRules values;
  SlotOwners owners;

  [[nodiscard]] std::vector<LayerRole> roles() const;
  /// True when the first step starts in mid-sequence, so that the fixture declares state.
  [[nodiscard]] bool resumes() const noexcept { return !steps.empty() && steps.front().shape.start_pos > 0; }
};

/// Reads a recipe from TOML text; `source` names it in errors. Throws Error(input) with the key, what was expected and
/// what was found; contradictions between values are reported all at once.
[[nodiscard]] Recipe parse_recipe(std::string_view text, const std::string& source);

/// The same from a file.
[[nodiscard]] Recipe read_recipe(const std::string& path);

}  // namespace attndiff
