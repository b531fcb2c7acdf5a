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

/// What the entries of one input row are.
enum class InputKind : std::uint8_t {
  uniform,       ///< root mean square `size`
  constant,      ///< all `size`, or all -`size`
  heavy_tailed,  ///< half of them within +-`size`, one in a hundred beyond 99 times that, at most 1024 times
};

[[nodiscard]] const char* name_of(InputKind kind) noexcept;

/// Other inputs for the tokens at positions p with p % every == at. They are bytes, not rules.
struct TokenRule {
  std::int64_t every = 1;
  std::int64_t at = 0;
  InputKind kind = InputKind::uniform;
  double size = 1.0;  ///< 0 makes rows of zeros
};

/// How large the values are. All are uniform; a root mean square of r means the range +-r * sqrt(3).
struct ValueRules {
  double input_rms = 1.0;    ///< of x
  double input_mean = 0.0;   ///< of x
  double norm_spread = 0.2;  ///< norm weights lie within 1 +- this
  double sink_spread = 2.0;  ///< sinks lie within sink_mean +- this
  double sink_mean = 0.0;
  double state_rms = 1.0;  ///< of declared window rows, latents, index keys and partial groups
  /// A weight [out, K] has the root mean square gain / sqrt(K), so that a gain of 1, the default, keeps the variance.
  std::map<std::string, double, std::less<>> gain;
  /// A weight [out, K] has the mean this / K, so that a row of ones becomes this on average.
  std::map<std::string, double, std::less<>> mean;
  /// The first rule that holds for a token counts.
  std::vector<TokenRule> tokens;
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
  std::string must_cover;  ///< counters of harness/fixture/coverage_counters.h, by commas
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
