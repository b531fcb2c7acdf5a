#include "harness/import/import_fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "harness/files/identity.h"
#include "harness/fixture/layout.h"
#include "harness/fixture/writer.h"
#include "harness/import/activations.h"
#include "harness/import/array_source.h"
#include "harness/import/checkpoint_weights.h"
#include "harness/import/model_description.h"
#include "reference/contract/error.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

FixtureHeader header_of(const ImportRequest& request, const ModelDescription& model,
                        const std::vector<LayerRole>& layers, const Activations& activations) {
  FixtureHeader header{.producer = "attndiff import",
                       .note = request.note,
                       .must_cover = {},
                       .config = model.config,
                       .layers = layers,
                       .steps = {}};
  std::int64_t position = request.start_pos;
  for (std::size_t step = 0; step < activations.steps(); ++step) {
    const std::string& x = activations.call(step, 0, layers.front().layer_id).x;
    const std::int64_t tokens = activations.read(x, DType::bf16, 2).shape()[0];
    header.steps.push_back({.shape = {.tokens = tokens, .start_pos = position}});
    header.config.max_tokens = std::max(header.config.max_tokens, tokens);
    position += tokens;
  }
  return header;
}

/// Reads a part whose type and shape the format gives, and refuses one that it does not have here.
Tensor read_part(const Activations& activations, const Activations::Part& part,
                 const std::vector<format::Part>& known) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const format::Part& candidate) { return candidate.name == part.name; });
  if (found == known.end()) {
    std::string names;
    for (const format::Part& candidate : known) {
      names += (names.empty() ? "" : ", ") + candidate.name;
    }
    activations.reject(part.array, "this layer has no such part", names.empty() ? "none" : names, part.name);
  }
  return activations.read(part.array, found->spec.dtype, found->spec.shape.rank());
}

bool has(const std::vector<Activations::Part>& parts, const std::string& name) {
  return std::any_of(parts.begin(), parts.end(), [&](const Activations::Part& part) { return part.name == name; });
}

/// Everything that a resumed layer needs is there; a first call at position 0 has no state.
void check_state(const FixtureHeader& header, const Activations& activations) {
  const std::int64_t start = header.steps.front().shape.start_pos;
  for (std::size_t layer = 0; layer < header.layers.size(); ++layer) {
    const LayerRole& role = header.layers[layer];
    const std::string where = fmt::format("initial_state.layers.{}.", role.layer_id);
    if (start == 0 && !activations.initial(layer).empty()) {
      activations.reject(activations.initial(layer).front().array, "a sequence that starts at position 0 has no state",
                         "--start-pos above 0", "0");
    }
    for (const format::Part& part : format::initial_parts(header.config, layer, role, start)) {
      if (start > 0 && part.required && !has(activations.initial(layer), part.name)) {
        activations.reject(where + part.name, "missing", fmt::format("the state before position {}", start),
                           "no such array");
      }
    }
  }
}

/// A stage that one call has is there in every call in which it exists, and q, o, idx and out where any is.
void check_expected(const FixtureHeader& header, const Activations& activations) {
  const ModelFamily& family = family_named(header.config.family);
  std::set<std::string> recorded;
  const auto each_call = [&](const auto& visit) {
    for (std::size_t step = 0; step < header.steps.size(); ++step) {
      for (std::size_t layer = 0; layer < header.layers.size(); ++layer) {
        visit(step, header.layers[layer], activations.call(step, layer, header.layers[layer].layer_id).expected);
      }
    }
  };
  each_call([&](std::size_t, const LayerRole&, const std::vector<Activations::Part>& expected) {
    for (const Activations::Part& part : expected) {
      recorded.insert({part.name, "q", "o", "idx", "out"});
    }
  });
  each_call([&](std::size_t step, const LayerRole& role, const std::vector<Activations::Part>& expected) {
    for (const std::string& name : recorded) {
      const StageInfo* stage = family.find(name);
      if (stage != nullptr && stage->shape(header.config, role, header.steps[step].shape) && !has(expected, name)) {
        activations.reject(fmt::format("steps.{}.layers.{}.expected.{}", step, role.layer_id, name), "missing",
                           "q, o, idx, out and every stage that another call has, or none at all", "no such array");
      }
    }
  });
}

void write_call(const ImportRequest& request, const FixtureHeader& header, const Activations& activations,
                std::size_t step, std::size_t layer, FixtureWriter& writer) {
  const ModelFamily& family = family_named(header.config.family);
  const LayerRole& role = header.layers[layer];
  const CallShape& shape = header.steps[step].shape;
  const Activations::Call& call = activations.call(step, layer, role.layer_id);
  Tensor x = activations.read(call.x, DType::bf16, 2);
  const Shape due{shape.tokens, header.config.dim};
  if (!(x.shape() == due)) {
    throw Error(ErrorKind::input,
                {request.activations, call.x, "wrong shape", "shape " + due.text(), "shape " + x.shape().text()});
  }
  writer.input(step, layer, std::move(x));
  for (const Activations::Part& part : call.shared) {
    writer.shared_input(step, layer, part.name,
                        read_part(activations, part, format::shared_parts(header.config, step, layer, role, shape)));
  }
  for (const Activations::Part& part : call.expected) {
    const StageInfo* stage = family.find(part.name);
    const std::optional<Shape> stage_shape = stage == nullptr ? std::nullopt : stage->shape(header.config, role, shape);
    if (!stage_shape) {
      activations.reject(part.array, "this call has no such stage", "a stage of the family " + std::string(family.name),
                         part.name);
    }
    Tensor value = activations.read(part.array, stage->dtype, stage_shape->rank());
    if (!(value.shape() == *stage_shape)) {
      activations.reject(part.array, "wrong shape", "shape " + stage_shape->text(), "shape " + value.shape().text());
    }
    writer.expected(step, layer, part.name, value);
  }
}

/// The command line sees the index of a checkpoint, not the files that it names.
void refuse_to_replace(const ArraySource& checkpoint, const std::string& output) {
  for (const std::string& file : checkpoint.files()) {
    if (same_file(output, file)) {
      throw Error(ErrorKind::usage, {.file = output,
                                     .object = {},
                                     .problem = "would replace a file of the checkpoint",
                                     .expected = "another path",
                                     .found = file});
    }
  }
}

}  // namespace

void import_fixture(const ImportRequest& request) {
  const ModelDescription model = read_model_description(request.config);
  const std::vector<LayerRole> layers = chosen_layers(model, request.layers, request.config);
  const std::unique_ptr<ArraySource> checkpoint = open_arrays(request.weights);
  refuse_to_replace(*checkpoint, request.output);
  const Activations activations(request.activations, layers);
  const FixtureHeader header = header_of(request, model, layers, activations);
  if (const auto wrong = violations(header.config, layers); !wrong.empty()) {
    throw Error(ErrorKind::input, {.file = request.config,
                                   .object = {},
                                   .problem = wrong.front(),
                                   .expected = "a configuration without contradictions",
                                   .found = fmt::format("{} of them", wrong.size())});
  }
  check_state(header, activations);
  check_expected(header, activations);
  FixtureWriter writer(request.output, header);
  const ModelFamily& family = family_named(header.config.family);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (const WeightSpec& spec : family.weights(header.config, layers[layer])) {
      writer.weight(layer, spec.name, checkpoint_weight(*checkpoint, request.prefix, layers[layer].layer_id, spec));
    }
    for (const Activations::Part& part : activations.initial(layer)) {
      writer.initial_state(
          layer, part.name,
          read_part(activations, part,
                    format::initial_parts(header.config, layer, layers[layer], header.steps.front().shape.start_pos)));
    }
  }
  for (std::size_t step = 0; step < header.steps.size(); ++step) {
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      write_call(request, header, activations, step, layer, writer);
    }
  }
  writer.finish();
}

}  // namespace attndiff
