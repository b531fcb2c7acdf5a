#include "harness/import/import_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <tuple>

#include "harness/fixture/reader.h"
#include "harness/fixture/testing.h"
#include "harness/fixture/testing/small_fixture.h"
#include "harness/import/checkpoint_weights.h"
#include "harness/import/import_test_files.h"
#include "harness/import/model_description.h"
#include "harness/recipe/e4m3_weight.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

using fixture_testing::made_up;
using fixture_testing::TemporaryFolder;
using fixture_testing::write_bytes;
using import_testing::NamedArray;
using import_testing::safetensors;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Two layers of ratio 0 and 2 of a small model, in the inference code's names.
constexpr const char* kConfig = R"({
  "dim": 64, "n_heads": 4, "head_dim": 32, "rope_head_dim": 16, "q_lora_rank": 32, "o_lora_rank": 48, "o_groups": 2,
  "window_size": 8, "norm_eps": 1e-20, "rope_theta": 10000.0, "compress_rope_theta": 40000.0, "rope_factor": 40,
  "original_seq_len": 64, "beta_fast": 32, "beta_slow": 1, "compress_ratios": [0, 2], "kv_source_layers": [1],
  "index_source_layers": [1], "index_n_heads": 2, "index_head_dim": 32, "index_topk": 3, "candidate_source_layer": -1,
  "candidate_topk_blocks": 0, "candidate_block_size": 0, "max_seq_len": 96, "n_layers": 2, "vocab_size": 129280})";

NamedArray named(const std::string& name, const Tensor& tensor) {
  const std::map<DType, const char*> types{
      {DType::bf16, "BF16"}, {DType::f32, "F32"}, {DType::e4m3, "F8_E4M3"}, {DType::u8, "U8"}, {DType::i32, "I32"}};
  return {name,
          types.at(tensor.dtype()),
          {tensor.shape().extents().begin(), tensor.shape().extents().end()},
          std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes())};
}

class Import : public ::testing::Test {
 protected:
  Import() {
    write_bytes(folder_.file("config.json"), kConfig);
    model_ = read_model_description(folder_.file("config.json"));
    request_ = {.config = folder_.file("config.json"),
                .weights = folder_.file("w.safetensors"),
                .prefix = {},
                .activations = folder_.file("a.safetensors"),
                .layers = {1, 0},
                .start_pos = 0,
                .note = "made for a test",
                .output = folder_.file("out.h5")};
    const ModelFamily& family = family_named(model_.config.family);
    std::uint64_t seed = 1;
    for (const LayerRole& role : model_.layers) {
      for (const WeightSpec& spec : family.weights(model_.config, role)) {
        weights_.push_back(named(weight_name(role.layer_id, spec.name), made_up(spec.dtype, spec.shape, ++seed)));
      }
      activations_.push_back(named(fmt_x(0, role.layer_id), made_up(DType::bf16, {1, 5, 64}, ++seed)));
      activations_.push_back(named(fmt_x(1, role.layer_id), made_up(DType::bf16, {1, 64}, ++seed)));
    }
  }

  static std::string weight_name(std::int64_t layer, const std::string& weight) {
    return "layers." + std::to_string(layer) + ".attn." + checkpoint_name(weight) + (weight == "sink" ? "" : ".weight");
  }
  static std::string fmt_x(int step, std::int64_t layer) {
    return "steps." + std::to_string(step) + ".layers." + std::to_string(layer) + ".x";
  }

  NamedArray& array(std::vector<NamedArray>& arrays, const std::string& name) {
    for (NamedArray& entry : arrays) {
      if (entry.name == name) {
        return entry;
      }
    }
    throw std::logic_error("no array " + name);
  }
  static void remove(std::vector<NamedArray>& arrays, const std::string& name) {
    std::erase_if(arrays, [&](const NamedArray& entry) { return entry.name == name; });
  }

  void run() {
    write_bytes(request_.weights, safetensors(weights_));
    write_bytes(request_.activations, safetensors(activations_));
    import_fixture(request_);
  }

  std::string refused(ErrorKind kind = ErrorKind::input) {
    try {
      run();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
      EXPECT_FALSE(std::filesystem::exists(request_.output));
      return e.what();
    }
    return "nothing was refused";
  }

  TemporaryFolder folder_;
  ModelDescription model_;
  ImportRequest request_;
  std::vector<NamedArray> weights_;
  std::vector<NamedArray> activations_;
};

TEST_F(Import, MakesAFixture) {
  run();
  const FixtureReader fixture(request_.output);
  EXPECT_EQ(fixture.note(), "made for a test");
  ASSERT_EQ(fixture.layers().size(), 2U);
  EXPECT_EQ(fixture.layers()[1].ratio, 2);
  EXPECT_TRUE(fixture.layers()[1].is_kv_source);
  EXPECT_EQ(fixture.config().max_tokens, 5);
  EXPECT_EQ(fixture.config().beta_fast, 32);
  ASSERT_EQ(fixture.steps().size(), 2U);
  EXPECT_EQ(fixture.steps()[1].shape.start_pos, 5);
  const std::string x = array(activations_, fmt_x(0, 1)).bytes;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(fixture.input(0, 1).raw()), x.size()), x);
  const std::string wk = array(weights_, weight_name(1, "idx_wk")).bytes;
  const LayerWeights weights = fixture.weights(1);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(weights.at("idx_wk").values.raw()), wk.size()), wk);
}

TEST_F(Import, E4m3StaysWhereTheFormatHasItAndBecomesItsExactValuesElsewhere) {
  const auto quantise = [&](const std::string& weight, std::vector<std::int64_t> shape) {
    const Weight made = quantise_e4m3(made_up(DType::f32, {shape[0], shape[1]}, 99));
    const std::string name = weight_name(0, weight);
    remove(weights_, name);
    weights_.push_back(named(name, made.values));
    NamedArray scale = named(name.substr(0, name.size() - 6) + "scale", made.scales);
    scale.dtype = "F8_E8M0";
    weights_.push_back(scale);
    return made;
  };
  quantise("wq_b", {128, 32});
  quantise("wo_a", {96, 64});
  run();
  const LayerWeights weights = FixtureReader(request_.output).weights(0);
  EXPECT_TRUE(weights.at("wq_b").quantised());
  EXPECT_EQ(weights.at("wo_a").values.dtype(), DType::bf16);
  const Tensor around = made_up(DType::f32, {96, 64}, 99);
  const Tensor values = to_f32(weights.at("wo_a").values);
  float largest = 0;
  float magnitude = 0;
  for (std::size_t i = 0; i < around.as<float>().size(); ++i) {
    magnitude = std::max(magnitude, std::abs(around.as<float>()[i]));
    largest = std::max(largest, std::abs(around.as<float>()[i] - values.as<float>()[i]));
  }
  EXPECT_LE(largest, magnitude / 16) << "half a step of e4m3";
  EXPECT_GT(largest, 0);

  remove(weights_, "layers.0.attn.wq_b.scale");
  std::filesystem::remove(request_.output);
  EXPECT_THAT(refused(), HasSubstr("layers.0.attn.wq_b.scale: missing"));
}

TEST_F(Import, APrefixAndShards) {
  for (NamedArray& weight : weights_) {
    weight.name.insert(0, "model.");
  }
  write_bytes(request_.activations, safetensors(activations_));
  const auto half = weights_.begin() + static_cast<std::ptrdiff_t>(weights_.size() / 2);
  write_bytes(folder_.file("1.safetensors"), safetensors({weights_.begin(), half}));
  write_bytes(folder_.file("2.safetensors"), safetensors({half, weights_.end()}));
  nlohmann::json map;
  for (auto entry = weights_.begin(); entry != weights_.end(); ++entry) {
    map[entry->name] = entry < half ? "1.safetensors" : "2.safetensors";
  }
  request_.weights = folder_.file("index.json");
  write_bytes(request_.weights, nlohmann::json{{"weight_map", map}}.dump());
  EXPECT_THROW(import_fixture(request_), Error) << "no prefix was given";
  request_.prefix = "model.";
  import_fixture(request_);
  EXPECT_EQ(FixtureReader(request_.output).layers().size(), 2U);
  const std::string shard = fixture_testing::read_bytes(folder_.file("2.safetensors"));
  request_.output = folder_.file("./2.safetensors");
  EXPECT_THROW(import_fixture(request_), Error) << "a file of the checkpoint";
  EXPECT_EQ(fixture_testing::read_bytes(folder_.file("2.safetensors")), shard);
}

TEST_F(Import, WhatIsMissingIsNamed) {
  const std::vector<NamedArray> all = weights_;
  for (const char* weight : {"sink", "wq_a", "comp_wgate", "comp_norm", "idx_weights_proj", "idx_k_norm"}) {
    weights_ = all;
    remove(weights_, weight_name(1, weight));
    const std::string name = weight_name(1, weight);
    if (std::string(weight) == "sink" || std::string(weight) == "wq_a") {
      EXPECT_THAT(refused(), HasSubstr(name + ": missing"));
    } else {
      EXPECT_THAT(refused(), AllOf(HasSubstr("w.safetensors"), HasSubstr(name + ": missing")));
    }
  }
  weights_ = all;
  remove(activations_, fmt_x(1, 1));
  EXPECT_THAT(refused(), HasSubstr("steps.1.layers.1.x: missing"));
}

TEST_F(Import, WrongTypesAndShapesAreRefused) {
  NamedArray& wkv = array(weights_, weight_name(0, "wkv"));
  const NamedArray good = wkv;
  wkv.shape = {64, 32};
  EXPECT_THAT(refused(), AllOf(HasSubstr("layers.0.attn.wkv.weight"), HasSubstr("[32, 64]"), HasSubstr("[64, 32]")));
  wkv = good;
  wkv.dtype = "F16";
  EXPECT_THAT(refused(), HasSubstr("F16"));
  wkv = good;
  NamedArray& x = array(activations_, fmt_x(0, 1));
  x.shape = {5, 1, 64};
  EXPECT_THAT(refused(), AllOf(HasSubstr("steps.0.layers.1.x"), HasSubstr("wrong shape")));
  x.shape = {10, 32};
  EXPECT_THAT(refused(), AllOf(HasSubstr("steps.0.layers.1.x"), HasSubstr("[5, 64]")));
}

TEST_F(Import, ExpectedStagesAndNamesNobodyKnows) {
  const std::vector<NamedArray> inputs = activations_;
  const auto with = [&](const std::string& name, const Tensor& value) {
    activations_ = inputs;
    for (const LayerRole& role : model_.layers) {
      for (std::size_t step = 0; step < 2; ++step) {
        for (const char* stage : {"q", "o", "idx", "out", "qr", "latent"}) {
          // Every stage that exists, so that only the one in question is wrong.
          const CallShape call{.tokens = step == 0 ? 5 : 1, .start_pos = step == 0 ? 0 : 5};
          const StageInfo& info = *family_named(model_.config.family).find(stage);
          const std::string array = fmt_x(static_cast<int>(step), role.layer_id);
          if (const auto shape = info.shape(model_.config, role, call)) {
            activations_.push_back(
                named(array.substr(0, array.size() - 1) + "expected." + stage, made_up(info.dtype, *shape, 5)));
          }
        }
      }
    }
    remove(activations_, name);
    activations_.push_back(named(name, value));
    return refused();
  };
  const Tensor o = made_up(DType::bf16, {5, 4, 32}, 7);
  activations_.push_back(named("steps.0.layers.0.expected.o", o));
  EXPECT_THAT(refused(), HasSubstr("steps.0.layers.0.expected.idx: missing"));
  EXPECT_THAT(with("steps.0.layers.0.expected.oo", o), HasSubstr("no such stage"));
  EXPECT_THAT(with("steps.0.layers.0.expected.latent", o), HasSubstr("no such stage"));
  EXPECT_THAT(with("steps.0.layers.0.expected.qr", made_up(DType::bf16, {5, 33}, 7)), HasSubstr("[5, 32]"));
  EXPECT_THAT(with("steps.0.layers.0.y", o), HasSubstr("unknown name"));
  EXPECT_THAT(with("step.0.layers.0.x", o), HasSubstr("unknown name"));
  EXPECT_THAT(with("steps.x.layers.0.x", o), HasSubstr("unknown name"));
  EXPECT_THAT(with("steps.99999.layers.0.x", o), HasSubstr("unknown name"));
  EXPECT_THAT(with("steps.0.layers.0.shared_in.compress_kv", o), HasSubstr("no such part"));

  EXPECT_THAT(with("initial_state.layers.0.window", o), HasSubstr("position 0 has no state"));
  EXPECT_EQ(with("steps.0.layers.0.expected.o", o), "nothing was refused");

  std::filesystem::remove(request_.output);
  activations_ = inputs;
  activations_.push_back(named("steps.0.layers.7.x", o));
  run();
  EXPECT_EQ(FixtureReader(request_.output).layers().size(), 2U) << "layers that are not imported may be there";
}

TEST_F(Import, AStartInMidSequenceNeedsItsState) {
  request_.start_pos = 6;
  for (const std::int64_t layer : {0, 1}) {
    remove(activations_, fmt_x(0, layer));
    array(activations_, fmt_x(1, layer)).name = fmt_x(0, layer);
  }
  EXPECT_THAT(refused(), HasSubstr("initial_state.layers.0.window: missing"));
  const auto state = [&](const std::string& name, DType dtype, const Shape& shape) {
    activations_.push_back(named("initial_state.layers." + name, made_up(dtype, shape, 3)));
  };
  state("0.window", DType::bf16, {8, 32});
  state("1.window", DType::bf16, {8, 32});
  state("1.comp_kv_state", DType::f32, {2, 32});
  state("1.comp_score_state", DType::f32, {2, 32});
  state("1.compress_kv", DType::bf16, {3, 32});
  EXPECT_THAT(refused(), HasSubstr("initial_state.layers.1.index_k: missing"));
  state("1.index_k", DType::bf16, {3, 32});
  run();
  EXPECT_TRUE(FixtureReader(request_.output).resumes());
}

TEST_F(Import, UsageIsChecked) {
  request_.layers = {0, 2};
  EXPECT_THAT(refused(ErrorKind::usage), AllOf(HasSubstr("layer 2"), HasSubstr("no such layer")));
  request_.layers = {0, 0};
  EXPECT_THAT(refused(), HasSubstr("does not ascend"));
}

TEST(ModelDescription, TheCheckpointsOwnNamesSayTheSame) {
  const TemporaryFolder folder;
  write_bytes(folder.file("inference.json"), kConfig);
  write_bytes(folder.file("config.json"), R"({"architectures": ["X"], "text_config": {
    "hidden_size": 64, "num_attention_heads": 4, "head_dim": 32, "qk_rope_head_dim": 16, "q_lora_rank": 32,
    "o_lora_rank": 48, "o_groups": 2, "sliding_window": 8, "rms_norm_eps": 1e-20, "rope_theta": 10000,
    "compress_rope_theta": 40000, "rope_scaling": {"rope_type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1,
    "original_max_position_embeddings": 64}, "compress_ratios": [0, 2], "kv_source_layer_ids": [1],
    "index_source_layer_ids": [1], "index_n_heads": 2, "index_head_dim": 32, "index_topk": 3,
    "candidate_source_layer_id": -1, "candidate_topk_blocks": 0, "candidate_block_size": 0,
    "max_position_embeddings": 96}})");
  std::string toml = "[config]\n";
  const ModelDescription inference = read_model_description(folder.file("inference.json"));
  for (const ConfigInt& entry : config_ints()) {
    if (entry.member != &ModelConfig::max_tokens) {
      toml += std::string(entry.name) + " = " + std::to_string(inference.config.*entry.member) + "\n";
    }
  }
  toml +=
      "eps = 1e-20\nrope_theta = 10000\ncompress_rope_theta = 40000\nrope_factor = 40\nbeta_fast = 32\nbeta_slow = 1\n";
  toml += "[[layers]]\nlayer_id = 0\nratio = 0\n[[layers]]\nlayer_id = 1\nratio = 2\nis_kv_source = true\n";
  toml += "is_index_source = true\n";
  write_bytes(folder.file("config.toml"), toml);
  for (const char* name : {"config.json", "config.toml"}) {
    const ModelDescription other = read_model_description(folder.file(name));
    for (const ConfigInt& entry : config_ints()) {
      EXPECT_EQ(other.config.*entry.member, inference.config.*entry.member) << name << " " << entry.name;
    }
    for (const ConfigReal& entry : config_reals()) {
      EXPECT_EQ(other.config.*entry.member, inference.config.*entry.member) << name << " " << entry.name;
    }
    ASSERT_EQ(other.layers.size(), 2U) << name;
    EXPECT_TRUE(other.layers[1].is_kv_source && other.layers[1].is_index_source) << name;
    EXPECT_EQ(other.layers[1].ratio, 2) << name;
  }
}

TEST(ModelDescription, WhatIsWrongIsNamed) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::string& file = "c.json") {
    write_bytes(folder.file(file), text);
    try {
      std::ignore = read_model_description(folder.file(file));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      return std::string(e.what());
    }
    return std::string("nothing was refused");
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kConfig;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(refused("{}"), HasSubstr("dim: missing key"));
  EXPECT_THAT(refused(R"({"hidden_size": 1})"), HasSubstr("num_attention_heads: missing key"));
  EXPECT_THAT(refused(changed("\"n_heads\": 4", "\"n_heads\": 4.5")), HasSubstr("n_heads: wrong value"));
  EXPECT_THAT(refused(changed("\"n_heads\": 4", "\"n_heads\": 1e30")), HasSubstr("n_heads: wrong value"));
  EXPECT_THAT(refused(changed("\"compress_ratios\": [0, 2]", "\"compress_ratios\": 2")),
              HasSubstr("a list of integers"));
  EXPECT_THAT(refused(changed("\"norm_eps\": 1e-20", "\"norm_eps\": \"x\"")), HasSubstr("norm_eps: wrong type"));
  EXPECT_THAT(refused("[config]\ndim = 1\n", "c.toml"), HasSubstr("missing key"));
  EXPECT_THAT(refused("[other]\n", "c.toml"), HasSubstr("missing table"));
}

}  // namespace
}  // namespace attndiff
