#include "harness/run/record.h"

#include "harness/fixture/reader.h"
#include "harness/run/capture.h"
#include "harness/run/layer_loader.h"
#include "harness/version.h"
#include "reference/contract/families.h"

namespace attndiff {

void record(const std::string& from, const std::string& to, Backend& backend, RuleForm rules) {
  const FixtureReader fixture(from);
  const ModelFamily& family = family_named(fixture.config().family);
  FixtureWriter writer(to, {.producer = version_text() + ", backend " + backend.name(),
                            .note = fixture.note(),
                            .must_cover = fixture.must_cover(),
                            .config = fixture.config(),
                            .layers = fixture.layers(),
                            .steps = fixture.steps(),
                            .rules = rules});
  writer.copy_inputs(fixture);

  LayerLoader loader(fixture);
  const auto sequence = backend.start(fixture);
  for (std::size_t step = 0; step < fixture.steps().size(); ++step) {
    for (std::size_t layer = 0; layer < fixture.layers().size(); ++layer) {
      Capture capture([](const StageInfo&) { return Interest::read; });
      sequence->forward(loader.load(step, layer), capture);
      for (const StageInfo& stage : family.stages) {
        if (const Tensor* value = capture.find(stage.id)) {
          writer.expected(step, layer, std::string(stage.name), *value);
        }
      }
    }
  }
  writer.finish();
}

}  // namespace attndiff
