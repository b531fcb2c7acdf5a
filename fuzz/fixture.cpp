#include "fuzz/fixture.h"

#include <string>
#include <variant>

#include "fuzz/demand.h"
#include "fuzz/memory_file.h"
#include "harness/fixture/reader.h"
#include "harness/fixture/structure.h"
#include "reference/contract/families.h"

namespace attndiff::fuzzing {
namespace {

/// A rule of a few bytes may ask for gigabytes: larger ones are read, not made.
constexpr std::int64_t kMostMade = std::int64_t{1} << 16;

void use(const FixtureTensor& stored) {
  if (const auto* rule = std::get_if<ProceduralTensor>(&stored); rule != nullptr && rule->shape.count() <= kMostMade) {
    demand(rule->materialise().defined(), "a rule makes its tensor");
  }
}

void read_call(const FixtureReader& reader, std::size_t step, std::size_t layer) {
  use(reader.stored_input(step, layer));
  for (const auto& [name, part] : reader.stored_shared_inputs(step, layer)) {
    use(part);
  }
  for (const std::string& stage : reader.recorded_stages(step, layer)) {
    demand(reader.expected(step, layer, stage).has_value(), "a recorded stage is there");
  }
}

void read_layer(const FixtureReader& reader, std::size_t layer) {
  const ModelFamily& family = family_named(reader.config().family);
  for (const WeightSpec& spec : family.weights(reader.config(), reader.layers()[layer])) {
    const FixtureWeight stored = reader.stored_weight(layer, spec.name);
    if (const auto* rule = std::get_if<ProceduralTensor>(&stored)) {
      use(*rule);
    }
  }
  if (reader.resumes()) {
    for (const auto& [name, part] : reader.stored_initial_state(layer)) {
      use(part);
    }
  }
}

/// Everything that the file holds, once.
void read_all(const FixtureReader& reader) {
  for (std::size_t layer = 0; layer < reader.layers().size(); ++layer) {
    read_layer(reader, layer);
    for (std::size_t step = 0; step < reader.steps().size(); ++step) {
      read_call(reader, step, layer);
    }
  }
}

/// Violations of a file; an Error that ends the check counts as one.
std::vector<Error> violations_of(const std::string& path, Way way) {
  try {
    return way == Way::guarded ? fixture_violations(path, CheckDepth::values)
                               : check_structure(h5::open_for_reading(path), CheckDepth::values).violations;
  } catch (const Error& e) {
    return {e};
  }
}

void demand_good_error(const Error& e, const std::string& path) {
  demand(e.kind() == ErrorKind::input, "a fault of the file is an Error(input)");
  demand(e.details().file == path, "an error names the file");
  demand(!e.details().problem.empty(), "an error says what is wrong");
}

}  // namespace

void check_fixture(const std::uint8_t* data, std::size_t size, Way way) {
  const MemoryFile file(data, size);
  const std::string& path = file.path();
  const std::vector<Error> violations = violations_of(path, way);
  for (const Error& e : violations) {
    demand_good_error(e, path);
  }
  try {
    const FixtureReader reader(path, way == Way::guarded ? Guard::child : Guard::none);
    read_all(reader);
  } catch (const Error& e) {
    demand_good_error(e, path);
    demand(!violations.empty(), "a file without a violation reads whole");
  }
}

}  // namespace attndiff::fuzzing
