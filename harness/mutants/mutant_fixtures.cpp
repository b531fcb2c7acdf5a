#include "harness/mutants/mutant_fixtures.h"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX, not in <cstdlib>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <system_error>

#include "harness/fixture/writer.h"
#include "harness/recipe/generate.h"
#include "harness/recipe/presets.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

struct Maker {
  MutantFixture fixture;
  std::function<void(const std::string& path)> make;
};

Maker as_preset(const std::string& name, const std::string& note) {
  return {.fixture = {.name = name, .note = note}, .make = [name](const auto& path) { generate(preset(name), path); }};
}

Maker altered(const std::string& name, const std::string& note, const std::string& base,
              const std::function<void(Recipe&)>& change) {
  return {.fixture = {.name = name, .note = note}, .make = [base, change](const std::string& path) {
            Recipe recipe = preset(base);
            change(recipe);
            generate(recipe, path);
          }};
}

void begin_with(Recipe& recipe, std::int64_t prefill, std::int64_t decode) {
  recipe.steps = {{.shape = {.tokens = prefill, .start_pos = 0}}};
  for (std::int64_t i = 0; i < decode; ++i) {
    recipe.steps.push_back({.shape = {.tokens = 1, .start_pos = prefill + i}});
  }
}

/// Decode steps of a window-only layer, 24 positions below the released model's longest sequence.
void far_window(Recipe& recipe) {
  constexpr std::int64_t kLongest = 1048576;
  constexpr std::int64_t kStart = kLongest - 24;
  recipe.layers = {recipe.layers.front()};
  recipe.config.max_seq = kLongest;
  recipe.steps.clear();
  for (std::int64_t i = 0; i < 4; ++i) {
    recipe.steps.push_back({.shape = {.tokens = 1, .start_pos = kStart + i}});
  }
}

/// Inputs far below a norm's usual epsilon, sinks beyond float32's exponential range, latents whose scales pass e4m3's.
void extreme_values(Recipe& recipe) {
  recipe.values.input_rms = 0x1p-10;
  recipe.values.sink_spread = 256;
  recipe.values.gain["comp_norm"] = 4096;
}

/// Changes what another fixture holds.
struct FixtureEdit {
  std::function<void(Weight&)> weight = [](Weight&) {};
  std::function<void(const CallShape&, Tensor&)> input = [](const CallShape&, Tensor&) {};
};

/// Copies a fixture that starts at position 0, with its weights and inputs as bytes.
void copy_edited(const FixtureReader& from, const FixtureEdit& edit, const std::string& path) {
  FixtureWriter writer(path, {.producer = from.producer(),
                              .note = from.note(),
                              .must_cover = {},
                              .config = from.config(),
                              .layers = from.layers(),
                              .steps = from.steps()});
  for (std::size_t layer = 0; layer < from.layers().size(); ++layer) {
    const LayerWeights weights = from.weights(layer);
    for (const auto& [name, stored] : weights.all()) {
      Weight weight = stored;
      edit.weight(weight);
      writer.weight(layer, name, weight);
    }
    for (std::size_t step = 0; step < from.steps().size(); ++step) {
      Tensor x = from.input(step, layer);
      edit.input(from.steps()[step].shape, x);
      writer.input(step, layer, x);
    }
  }
  writer.finish();
}

Maker edited(const std::string& name, const std::string& note, const std::string& base, const FixtureEdit& edit) {
  return {.fixture = {.name = name, .note = note}, .make = [base, edit](const std::string& path) {
            const std::string unedited = path + ".unedited";
            generate(preset(base), unedited);
            copy_edited(FixtureReader(unedited), edit, path);
          }};
}

/// The third token of a prefill is all zero, and so is every row made of it.
void zero_token(const CallShape& call, Tensor& x) {
  constexpr std::size_t kToken = 2;
  if (call.prefill()) {
    const auto width = static_cast<std::size_t>(x.shape()[1]);
    const auto row = x.as<Bf16>().subspan(kToken * width, width);
    std::fill(row.begin(), row.end(), Bf16{});
  }
}

/// Neighbouring blocks of an e4m3 weight differ by powers of two.
void uneven_scales(Weight& weight) {
  if (weight.quantised()) {
    const auto scales = weight.scales.as<std::uint8_t>();
    for (std::size_t i = 0; i < scales.size(); ++i) {
      scales[i] = static_cast<std::uint8_t>(scales[i] + i % 3);
    }
  }
}

const std::vector<Maker>& makers() {
  static const std::vector<Maker> all{
      as_preset("micro", "every layer kind and threshold"),
      as_preset("tiny", "smallest dimensions"),
      as_preset("mid", "two-level selection binds"),
      as_preset("micro-ratio4", "partial groups of ratios 4 and 3"),
      as_preset("micro-e4m3", "weights stored as e4m3"),
      as_preset("tiny-ties", "many equal scores"),
      as_preset("tiny-resume", "starts in a group's middle"),
      altered("short-prefill", "a prefill shorter than the window, so that absent entries stand first in decode",
              "tiny", [](Recipe& recipe) { begin_with(recipe, 3, 10); }),
      altered("one-index-source", "only the first index source and a reader behind it", "tiny",
              [](Recipe& recipe) { recipe.layers.resize(3); }),
      altered("one-candidate-block", "fewer candidates than picks", "tiny",
              [](Recipe& recipe) { recipe.config.cand_topk_blocks = 1; }),
      altered("far-window", "positions near 2^20 on a window-only layer", "micro", far_window),
      altered("extreme-values", "tiny inputs, huge sinks, huge latents", "tiny", extreme_values),
      edited("zero-token", "a token of zeros: wholly zero quantiser blocks", "tiny", {.input = zero_token}),
      edited("uneven-scales", "e4m3 weights whose block scales differ", "micro-e4m3", {.weight = uneven_scales}),
      as_preset("released-window-2048", "released geometry: 2048 tokens, and 8 decode steps"),
      as_preset("released-kv2-2048", "the same on a source of ratio 2"),
      as_preset("released-window-40000", "released geometry: decode at position 40,000"),
      as_preset("released-kv2-40000", "the same on a source of ratio 2"),
      as_preset("released-reader2-40000", "the same with a reader behind it"),
      as_preset("released-cand1-40000", "the same on the candidate source"),
      as_preset("released-index1-40000", "the same with an index source that uses its mask"),
      as_preset("released-reader1-40000", "the same with a reader behind it"),
  };
  return all;
}

}  // namespace

const std::vector<MutantFixture>& mutant_fixtures() {
  static const std::vector<MutantFixture> all = [] {
    std::vector<MutantFixture> fixtures;
    for (const Maker& maker : makers()) {
      fixtures.push_back(maker.fixture);
    }
    return fixtures;
  }();
  return all;
}

MutantFixtures::MutantFixtures() {
  std::string pattern = (std::filesystem::temp_directory_path() / "attndiff-mutants-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw Error(ErrorKind::output, {.file = pattern,
                                    .object = {},
                                    .problem = "temporary folder not made: " + std::generic_category().message(errno),
                                    .expected = {},
                                    .found = {}});
  }
  folder_ = pattern;
}

MutantFixtures::~MutantFixtures() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

const std::string& MutantFixtures::path(const std::string& name) {
  const auto have = made_.find(name);
  if (have != made_.end()) {
    return have->second;
  }
  const auto& all = makers();
  const auto maker = std::find_if(all.begin(), all.end(), [&](const Maker& m) { return m.fixture.name == name; });
  if (maker == all.end()) {
    throw Error(ErrorKind::usage, "there is no mutant fixture " + name);
  }
  const std::string file = folder_ + "/" + name + ".h5";
  maker->make(file);
  return made_.emplace(name, file).first->second;
}

}  // namespace attndiff
