#include "device/sequence.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "device/model_test_support.h"
#include "kernels/launch.h"
#include "reference/contract/error.h"
#include "reference/deepseek_v41/sequence.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff::device {
namespace {

using deepseek_v41::kStageCount;

class Sequence : public OnGpu {};

/// Keeps a copy of every stage the reference offers.
class Recorder final : public Observer {
 public:
  std::map<int, Tensor> stages;
  Interest interest(const LayerCall&, const StageInfo&) override { return Interest::read; }
  void on_stage(const LayerCall&, StageView& view, attndiff::Stream) override {
    stages[view.stage.id] = copy_of(view.value);
  }
};

/// Compares every device stage with the reference's and puts the reference's in its place: an error shows where it
/// arises and nowhere else.
class Lockstep final : public Observer {
 public:
  explicit Lockstep(std::map<int, Tensor>& expected) : expected_(expected) {}
  int compared = 0;

  Interest interest(const LayerCall&, const StageInfo&) override { return Interest::read | Interest::replace; }
  void on_stage(const LayerCall& call, StageView& view, attndiff::Stream stream) override {
    const auto queue = static_cast<cudaStream_t>(stream.handle);
    const Tensor& want = expected_.at(view.stage.id);
    ASSERT_EQ(view.value.shape, want.shape()) << view.stage.name;
    ASSERT_EQ(view.value.place.kind, Place::Kind::cuda);
    Tensor got(view.value.dtype, view.value.shape);
    copy_to_host(got.raw(), view.value.data, got.bytes(), queue);
    ATTNDIFF_CUDA(cudaStreamSynchronize(queue));
    compare(call, view.stage, got, want);
    copy_to_device(view.value.data, want.raw(), want.bytes(), queue);
    ++compared;
  }

 private:
  static void compare(const LayerCall& call, const StageInfo& stage, const Tensor& got, const Tensor& want) {
    SCOPED_TRACE("layer " + std::to_string(call.role.layer_id) + ", start_pos " + std::to_string(call.shape.start_pos) +
                 ", stage " + std::string(stage.name));
    if (stage.kind == StageKind::index || stage.kind == StageKind::mask || stage.kind == StageKind::code) {
      EXPECT_EQ(std::memcmp(got.raw(), want.raw(), got.bytes()), 0);
      return;
    }
    const Tensor g = to_f32(got);
    const Tensor w = to_f32(want);
    const auto values = w.as<float>();
    double squares = 0;
    std::int64_t finite = 0;
    for (const float v : values) {
      squares += std::isfinite(v) ? static_cast<double>(v) * v : 0.0;
      finite += std::isfinite(v) ? 1 : 0;
    }
    const double rms = std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(finite, 1)));
    std::int64_t moved = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float a = g.as<float>()[i];
      if (!std::isfinite(values[i])) {
        ASSERT_EQ(a, values[i]) << i;
        continue;
      }
      // What four summation orders of the recorded fixtures stay within (docs/numerics.md).
      constexpr double kOfRms = 0.0084;
      const double unit = stage.dtype == DType::bf16 ? bf16_unit(values[i]) : 0;
      ASSERT_NEAR(a, values[i], unit + (stage.dtype == DType::bf16 ? kOfRms : 1e-4) * rms) << i;
      moved += std::fabs(a - values[i]) > 1e-5 * rms ? 1 : 0;
    }
    EXPECT_LE(moved, 2 + static_cast<std::int64_t>(values.size()) / 50) << "of " << values.size();
  }

  std::map<int, Tensor>& expected_;
};

struct Model {
  ModelConfig config = micro_config();
  std::vector<LayerRole> layers = micro_layers();
  std::vector<LayerWeights> weights;

  explicit Model(IndexKeyRule rule = IndexKeyRule::slot) {
    config.index_keys = rule;
    for (const LayerRole& role : layers) {
      weights.push_back(random_weights(config, role, static_cast<unsigned>(100 * role.layer_id + 1)));
    }
  }
  void upload(Runtime& runtime) const {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      runtime.upload(i, weights[i]);
    }
  }
};

void expect_lockstep(const Model& model, std::int64_t prefill, std::int64_t decodes) {
  Runtime runtime(model.config, model.layers, 0);
  model.upload(runtime);
  DeviceSequence device(runtime);
  reference::ThreadPool pool(2);
  const deepseek_v41::Steps steps;
  const deepseek_v41::Engine engine{model.config, steps, pool};
  deepseek_v41::LayerStack stack(engine, model.layers);
  int compared = 0;
  for (const CallShape& call : calls(prefill, decodes)) {
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
      const Tensor x = random_input(model.config, call, layer);
      Recorder recorder;
      const LayerResult want = stack.forward(layer, model.weights[layer], call, 0, x, nullptr, recorder);
      Lockstep lockstep(recorder.stages);
      const LayerResult got = download(device.forward(layer, call, 0, x, nullptr, lockstep), runtime.queue());
      ASSERT_EQ(lockstep.compared, static_cast<int>(recorder.stages.size()));
      EXPECT_EQ(std::memcmp(got.out.raw(), want.out.raw(), want.out.bytes()), 0);  // the last stage was replaced
      EXPECT_EQ(got.compressed_count, want.compressed_count);
      EXPECT_EQ(std::memcmp(got.window_rows.raw(), want.window_rows.raw(), want.window_rows.bytes()), 0);
      compared += lockstep.compared;
      if (::testing::Test::HasFailure()) {
        return;
      }
    }
  }
  EXPECT_GT(compared, static_cast<int>(model.layers.size()) * (1 + static_cast<int>(decodes)) * 8);
}

TEST_F(Sequence, EveryStageInLockstepWithTheReference) { expect_lockstep(Model(), 21, 19); }

TEST_F(Sequence, LockstepWithEachSourcesOwnKeys) { expect_lockstep(Model(IndexKeyRule::own), 6, 6); }

TEST_F(Sequence, LockstepFromOneToken) { expect_lockstep(Model(), 1, 5); }

TEST_F(Sequence, LockstepWithQuantisedWeights) {
  Model model;
  for (LayerWeights& weights : model.weights) {
    for (const char* name : {"wq_a", "wq_b", "wkv"}) {
      const Shape shape = weights.at(name).values.shape();
      Weight weight{.values = Tensor(DType::e4m3, shape),
                    .scales = Tensor(DType::u8, {(shape[0] + 31) / 32, (shape[1] + 31) / 32})};
      for (std::int64_t i = 0; i < shape.count(); ++i) {
        weight.values.raw()[i] = static_cast<std::byte>((i * 29 + 3) % 120 + (i % 2) * 128);  // no NaN code
      }
      for (std::size_t i = 0; i < weight.scales.bytes(); ++i) {
        weight.scales.raw()[i] = static_cast<std::byte>(116 + i % 3);
      }
      weights.set(name, std::move(weight));
    }
  }
  expect_lockstep(model, 9, 3);
}

/// Everything a free run produces, as bytes.
using Bytes = std::vector<std::byte>;

void append(Bytes& bytes, const Tensor& t) { bytes.insert(bytes.end(), t.raw(), t.raw() + t.bytes()); }

Bytes free_run(Runtime& runtime, const Model& model, const std::vector<CallShape>& steps) {
  DeviceSequence sequence(runtime);
  NullObserver none;
  Bytes bytes;
  for (const CallShape& call : steps) {
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
      const Tensor x = random_input(model.config, call, layer);
      const LayerResult r = download(sequence.forward(layer, call, 0, x, nullptr, none), runtime.queue());
      for (const Tensor* t : {&r.q, &r.window_rows, &r.idx, &r.o, &r.out}) {
        append(bytes, *t);
      }
    }
  }
  return bytes;
}

TEST_F(Sequence, RepeatsBitForBitAlsoAfterAnotherSequence) {
  const Model model;
  Runtime runtime(model.config, model.layers, 0);
  model.upload(runtime);
  const auto steps = calls(11, 4);
  const Bytes first = free_run(runtime, model, steps);
  free_run(runtime, model, calls(17, 2));
  for (int repeat = 1; repeat < 20; ++repeat) {
    ASSERT_EQ(free_run(runtime, model, steps), first) << "repeat " << repeat;
  }
}

TEST_F(Sequence, PoisonedWorkspacesChangeNothing) {
  const Model model;
  Runtime plain(model.config, model.layers, 0);
  model.upload(plain);
  Runtime poisoned(model.config, model.layers, 0, {.attention = {}, .poison = true});
  model.upload(poisoned);
  const auto steps = calls(13, 8);
  EXPECT_EQ(free_run(poisoned, model, steps), free_run(plain, model, steps));
}

TEST_F(Sequence, PaddedDecodeAgreesBitForBit) {
  const Model model;
  Runtime plain(model.config, model.layers, 0);
  model.upload(plain);
  Runtime padded(model.config, model.layers, 0, {.attention = {}, .padded_decode = true});
  model.upload(padded);
  const auto steps = calls(3, 12);
  EXPECT_EQ(free_run(padded, model, steps), free_run(plain, model, steps));
}

TEST_F(Sequence, AnUnobservedRunIsTheProductionPlan) {
  const Model model;
  Runtime runtime(model.config, model.layers, 0);
  model.upload(runtime);
  DeviceSequence observed(runtime);
  DeviceSequence plain(runtime);
  NullObserver none;
  class Reader final : public Observer {
   public:
    Interest interest(const LayerCall&, const StageInfo&) override { return Interest::read; }
    void on_stage(const LayerCall&, StageView&, attndiff::Stream) override {}
  } reader;
  for (const CallShape& call : calls(9, 5)) {
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
      const Tensor x = random_input(model.config, call, layer);
      const LayerResult a = download(observed.forward(layer, call, 0, x, nullptr, reader), runtime.queue());
      const LayerResult b = download(plain.forward(layer, call, 0, x, nullptr, none), runtime.queue());
      ASSERT_EQ(std::memcmp(a.out.raw(), b.out.raw(), b.out.bytes()), 0);
      ASSERT_EQ(std::memcmp(a.idx.raw(), b.idx.raw(), b.idx.bytes()), 0);
    }
  }
}

TEST_F(Sequence, AThousandSequencesLeakNothing) {
  const Model model;
  Runtime runtime(model.config, model.layers, 0);
  { const DeviceSequence warm_up(runtime); }
  std::size_t before = 0;
  std::size_t total = 0;
  ATTNDIFF_CUDA(cudaMemGetInfo(&before, &total));
  for (int i = 0; i < 1000; ++i) {
    DeviceSequence sequence(runtime);
    sequence.release();
    sequence.release();
  }
  std::size_t after = 0;
  ATTNDIFF_CUDA(cudaMemGetInfo(&after, &total));
  EXPECT_EQ(after, before);
}

TEST_F(Sequence, ARefusedCallChangesNothing) {
  const Model model;
  Runtime runtime(model.config, model.layers, 0);
  model.upload(runtime);
  DeviceSequence sequence(runtime);
  NullObserver none;
  const CallShape two{.tokens = 2, .start_pos = 4};
  const Tensor x = random_input(model.config, two, 0);
  EXPECT_THROW(sequence.forward(0, two, 0, x, nullptr, none), Error);
  const CallShape first{.tokens = 4, .start_pos = 0};
  const Tensor x4 = random_input(model.config, first, 2);
  try {
    sequence.forward(2, first, 0, x4, nullptr, none);
    FAIL() << "a reader without a source was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::refused);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("layer 2: slot compress_kv"));
  }
  EXPECT_EQ(sequence.state(2).next_position, 0);
}

TEST_F(Sequence, AnIndexOutsideTheRowsIsRefusedNotRead) {
  const Model model;
  Runtime runtime(model.config, model.layers, 0);
  model.upload(runtime);
  DeviceSequence sequence(runtime);
  class Falsifier final : public Observer {
   public:
    Interest interest(const LayerCall&, const StageInfo& stage) override {
      return stage.id == deepseek_v41::kIdx ? Interest::replace : Interest::nothing;
    }
    void on_stage(const LayerCall&, StageView& view, attndiff::Stream stream) override {
      const std::int32_t far = 1 << 30;
      copy_to_device(view.value.data, &far, sizeof(far), static_cast<cudaStream_t>(stream.handle));
    }
  } falsifier;
  const CallShape call{.tokens = 5, .start_pos = 0};
  EXPECT_THROW(sequence.forward(0, call, 0, random_input(model.config, call, 0), nullptr, falsifier), Error);
}

TEST_F(Sequence, OutOfMemoryNamesWhatWasAskedAndFree) {
  try {
    const DeviceBuffer impossible(std::size_t{1} << 50U, "a test buffer");
    FAIL() << "a pebibyte was allocated";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("a test buffer"));
    EXPECT_THAT(e.what(), ::testing::HasSubstr("bytes free"));
  }
}

TEST_F(Sequence, SharedInputsAndDeclaredStateStandInForSources) {
  const Model model;
  Runtime runtime(model.config, model.layers, 0);
  model.upload(runtime);
  DeviceSequence device(runtime);
  reference::ThreadPool pool(2);
  const deepseek_v41::Steps steps;
  const deepseek_v41::Engine engine{model.config, steps, pool};
  deepseek_v41::LayerStack stack(engine, model.layers);
  const ModelConfig& c = model.config;
  constexpr std::int64_t kStart = 101;
  std::vector<InitialLayerState> declared(model.layers.size());
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const LayerRole& role = model.layers[i];
    const auto seed = static_cast<unsigned>(40 * i);
    declared[i].window = random_tensor(DType::bf16, {c.window, c.head_dim}, seed, 0, 1);
    if (role.is_kv_source) {
      const std::int64_t groups = kStart / role.ratio;
      declared[i].compress_kv = random_tensor(DType::bf16, {groups, c.head_dim}, seed + 1, 0, 1);
      declared[i].index_k = random_tensor(DType::bf16, {groups, c.index_head_dim}, seed + 2, 0, 1);
      declared[i].comp_kv_state = random_tensor(DType::f32, {role.ratio, c.head_dim}, seed + 3, 0, 1);
      declared[i].comp_score_state = random_tensor(DType::f32, {role.ratio, c.head_dim}, seed + 4, 0, 1);
    }
  }
  device.resume(kStart, declared, 1, std::nullopt);
  stack.resume(kStart, declared, 1, std::nullopt);
  for (std::int64_t p = kStart; p < kStart + 3; ++p) {
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
      const CallShape call{.tokens = 1, .start_pos = p};
      const Tensor x = random_input(c, call, layer);
      SharedInputs shared;
      if (layer == 2) {
        shared.selection = Tensor(DType::i32, {1, c.index_topk});
        for (std::int32_t i = 0; i < c.index_topk; ++i) {
          shared.selection.as<std::int32_t>()[static_cast<std::size_t>(i)] = i < 3 ? 7 * i : -1;
        }
        shared.compress_kv = random_tensor(DType::bf16, {60, c.head_dim}, 5, 0, 1);
      }
      Recorder recorder;
      stack.forward(layer, model.weights[layer], call, 0, x, &shared, recorder);
      Lockstep lockstep(recorder.stages);
      device.forward(layer, call, 0, x, &shared, lockstep);
      ASSERT_EQ(lockstep.compared, static_cast<int>(recorder.stages.size()));
      ASSERT_FALSE(HasFailure());
    }
  }
}

}  // namespace
}  // namespace attndiff::device
