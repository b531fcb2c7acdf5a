#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "reference/deepseek_v41/model_test_support.h"

namespace attndiff::deepseek_v41 {
namespace {

using testing::ElementsAreArray;
using testing::IsSubsetOf;
using testing::IsSupersetOf;

using Stages = std::set<StageId>;

const std::vector<CallShape>& calls() {
  static const std::vector<CallShape> kCalls{prefill(7), decode(7), decode(8), decode(9), decode(10), decode(11)};
  return kCalls;
}

TEST(Observer, SeesEveryStageOnceInTableOrderWithItsShape) {
  const TestModel model = random_model(small_config(), every_kind());
  Session session(model);
  for (const CallShape& call : calls()) {
    for (std::size_t layer = 0; layer < model.roles.size(); ++layer) {
      std::vector<std::string> names;
      std::vector<Shape> shapes;
      for (const StageInfo& stage : family().stages) {
        if (const auto shape = stage.shape(model.config, model.roles[layer], call)) {
          names.emplace_back(stage.name);
          shapes.push_back(*shape);
        }
      }
      Recorder recorder;
      (void)session.run(layer, call, recorder);
      ASSERT_THAT(recorder.order, ElementsAreArray(names)) << "layer " << layer << ", position " << call.start_pos;
      ASSERT_EQ(recorder.shapes, shapes);
      for (const auto& [id, value] : recorder.stages) {
        EXPECT_EQ(value.dtype(), family().stages[id].dtype) << family().stages[id].name;
      }
    }
  }
}

/// Asks for one stage and counts what it is offered.
class OneStage final : public Observer {
 public:
  explicit OneStage(StageId wanted) : wanted_(wanted) {}
  [[nodiscard]] Interest interest(const LayerCall&, const StageInfo& stage) override {
    return stage.id == wanted_ ? Interest::read : Interest::nothing;
  }
  void on_stage(const LayerCall& call, StageView& view, Stream stream) override {
    EXPECT_EQ(view.stage.id, wanted_);
    EXPECT_EQ(view.unrounded.data, nullptr) << "offered though nobody asked";
    EXPECT_EQ(call.role.layer_id, 1);
    EXPECT_EQ(stream.handle, nullptr);
    ++offered;
  }
  int offered = 0;

 private:
  StageId wanted_;
};

TEST(Observer, IsOfferedOnlyWhatItAskedFor) {
  const TestModel model = random_model(small_config(), every_kind());
  for (const StageId id : {kQr, kRing, kSelection, kRows, kLse, kOut}) {
    OneStage observer(id);
    Session session(model);
    (void)session.run(1, prefill(6), observer);
    EXPECT_EQ(observer.offered, 1) << family().stages[id].name;
  }
}

TEST(Observer, UnroundedValuesRoundToTheStage) {
  const TestModel model = random_model(small_config(), every_kind());
  Session session(model);
  Recorder recorder;
  (void)session.run(1, prefill(6), recorder);
  for (const StageId id :
       {kQr, kQ, kKvPre, kLatent, kIndexKPre, kIndexQPre, kIndexW, kIndexScore, kCompressPre, kO, kOg, kOut}) {
    ASSERT_TRUE(recorder.unrounded.contains(id)) << family().stages[id].name;
    EXPECT_TRUE(same_bytes(to_bf16(recorder.unrounded.at(id)), recorder.stages.at(id))) << family().stages[id].name;
  }
  EXPECT_FALSE(same_bytes(recorder.unrounded.at(kOut), to_f32(recorder.stages.at(kOut)))) << "nothing was rounded";
}

TEST(Observer, ChangesNothingByLooking) {
  const TestModel model = random_model(small_config(), every_kind());
  Session observed(model);
  Session unobserved(model);
  for (const CallShape& call : calls()) {
    for (std::size_t layer = 0; layer < model.roles.size(); ++layer) {
      Recorder recorder;
      const LayerResult with = observed.run(layer, call, recorder);
      const LayerResult without = unobserved.run(layer, call);
      EXPECT_TRUE(same_bytes(with.q, without.q));
      EXPECT_TRUE(same_bytes(with.window_rows, without.window_rows));
      EXPECT_TRUE(same_bytes(with.idx, without.idx));
      EXPECT_TRUE(same_bytes(with.o, without.o));
      EXPECT_TRUE(same_bytes(with.out, without.out)) << "layer " << layer << ", position " << call.start_pos;
      EXPECT_TRUE(same_bytes(with.out, recorder.stages.at(kOut)));
    }
  }
}

TEST(Observer, ResultsDoNotDependOnThreads) {
  const TestModel model = random_model(small_config(), every_kind());
  Session one(model, 1);
  Session three(model, 3);
  for (const CallShape& call : calls()) {
    for (std::size_t layer = 0; layer < model.roles.size(); ++layer) {
      Recorder a;
      Recorder b;
      (void)one.run(layer, call, a);
      (void)three.run(layer, call, b);
      for (const auto& [id, value] : a.stages) {
        EXPECT_TRUE(same_bytes(value, b.stages.at(id))) << family().stages[id].name << ", layer " << layer;
      }
    }
  }
}

/// Negates reals, empties selections, inverts masks.
void falsify(Tensor& t) {
  switch (t.dtype()) {
    case DType::bf16:
      for (Bf16& v : t.as<Bf16>()) {
        v.bits ^= 0x8000U;
      }
      return;
    case DType::f32:
      for (float& v : t.as<float>()) {
        v = -v;
      }
      return;
    case DType::i32:
      std::fill(t.as<std::int32_t>().begin(), t.as<std::int32_t>().end(), -1);
      return;
    case DType::u8:
      for (std::uint8_t& v : t.as<std::uint8_t>()) {
        v ^= 1U;
      }
      return;
    case DType::e4m3:
      FAIL() << "no stage has this type";
  }
}

/// Stages of layer `layer` that differ once `stage` is falsified in its last call.
Stages changed_by(const TestModel& model, std::size_t layer, const std::vector<CallShape>& sequence, StageId stage) {
  Session plain(model);
  Session falsified(model);
  for (const CallShape& call : sequence) {
    for (std::size_t before = 0; before < layer; ++before) {
      (void)plain.run(before, call);
      (void)falsified.run(before, call);
    }
    Recorder base;
    (void)plain.run(layer, call, base);
    if (&call != &sequence.back()) {
      (void)falsified.run(layer, call);
      continue;
    }
    Recorder changed(stage, falsify);
    (void)falsified.run(layer, call, changed);
    Stages differing;
    for (const auto& [id, value] : base.stages) {
      if (!same_bytes(value, changed.stages.at(id))) {
        differing.insert(id);
      }
    }
    return differing;
  }
  return {};
}

/// The stage and everything the table says is computed from it.
Stages downstream(StageId stage) {
  Stages reached{stage};
  for (const StageInfo& info : family().stages) {
    if (std::any_of(info.inputs.begin(), info.inputs.end(),
                    [&](int input) { return reached.contains(static_cast<StageId>(input)); })) {
      reached.insert(static_cast<StageId>(info.id));
    }
  }
  return reached;
}

TEST(Replacement, ReachesNothingThatTheTableDoesNotName) {
  const TestModel model = random_model(small_config(), every_kind());
  for (const auto& sequence : {std::vector{prefill(6)}, std::vector{prefill(11), decode(11)}}) {
    for (std::size_t layer = 0; layer < model.roles.size(); ++layer) {
      for (const StageInfo& stage : family().stages) {
        if (stage.shape(model.config, model.roles[layer], sequence.back())) {
          const auto id = static_cast<StageId>(stage.id);
          EXPECT_THAT(changed_by(model, layer, sequence, id), IsSubsetOf(downstream(id)))
              << stage.name << ", layer " << layer;
        }
      }
    }
  }
}

TEST(Replacement, OfStagesInPrefillReachesWhatIsComputedFromThem) {
  const TestModel model = random_model(small_config(), every_kind());
  const auto changed = [&](StageId stage) { return changed_by(model, 1, {prefill(6)}, stage); };
  EXPECT_EQ(changed(kKv), (Stages{kKv, kRing, kRows, kLse, kO, kOg, kOut}));
  EXPECT_EQ(changed(kRing), (Stages{kRing})) << "a prefill attends its own rows";
  EXPECT_EQ(changed(kCompState), (Stages{kCompState}));
  EXPECT_EQ(changed(kLse), (Stages{kLse}));
  EXPECT_EQ(changed(kSelection), (Stages{kSelection, kIdx, kLse, kO, kOg, kOut}));
  EXPECT_EQ(changed(kCompressPre), (Stages{kCompressPre, kCompressKv, kRows, kLse, kO, kOg, kOut}));
  EXPECT_EQ(changed(kRows), (Stages{kRows, kLse, kO, kOg, kOut}));
  EXPECT_EQ(changed(kO), (Stages{kO, kOg, kOut}));
  EXPECT_THAT(changed(kQr), IsSupersetOf({kQr, kQ, kIndexQPre, kIndexQ, kIndexScore, kLse, kO, kOg, kOut}));
  EXPECT_THAT(changed(kLatent), IsSupersetOf({kLatent, kIndexKPre, kIndexK, kIndexScore, kCompressPre, kCompressKv}));
  EXPECT_THAT(changed(kIndexK), IsSupersetOf({kIndexK, kIndexScore}));
}

TEST(Replacement, OfStateInDecodeReachesTheAttention) {
  const TestModel model = random_model(small_config(), every_kind());
  EXPECT_EQ(changed_by(model, 0, {prefill(6), decode(6)}, kRing), (Stages{kRing, kRows, kLse, kO, kOg, kOut}));
}

TEST(Replacement, OfARingIsWhatTheNextCallAttends) {
  const TestModel model = random_model(small_config(), {{.layer_id = 0}});
  Session session(model);
  Recorder replaced(kRing, falsify);
  (void)session.run(0, prefill(6), replaced);
  EXPECT_TRUE(same_bytes(session.stack().state(0).ring, replaced.stages.at(kRing)));
}

TEST(Replacement, OfCachesAndSlotsIsWhatLaterLayersRead) {
  const TestModel model = random_model(small_config(), every_kind());
  const auto written = [](const RowCache& cache) {
    return std::vector<Bf16>(cache.written_rows().begin(), cache.written_rows().end());
  };
  const auto bf16_of = [](const Tensor& t) { return std::vector<Bf16>(t.as<Bf16>().begin(), t.as<Bf16>().end()); };
  Session session(model);
  Recorder latents(kCompressKv, falsify);
  (void)session.run(4, prefill(6), latents);
  EXPECT_EQ(written(*session.stack().slots().compress_kv->value), bf16_of(latents.stages.at(kCompressKv)));
  Recorder keys(kIndexK, falsify);
  (void)session.run(4, prefill(6), keys);
  EXPECT_EQ(written(*session.stack().slots().index_k->value), bf16_of(keys.stages.at(kIndexK)));
  Recorder selection(kSelection, falsify);
  (void)session.run(4, prefill(6), selection);
  EXPECT_TRUE(same_bytes(session.stack().slots().selection->value, selection.stages.at(kSelection)));
  Recorder mask(kCandidates, falsify);
  (void)session.run(4, prefill(6), mask);
  EXPECT_TRUE(same_bytes(session.stack().slots().candidates->value, mask.stages.at(kCandidates)));
}

}  // namespace
}  // namespace attndiff::deepseek_v41
