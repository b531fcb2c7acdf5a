#include "harness/import/activations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

constexpr const char* kForms =
    "steps.K.layers.N.x, steps.K.layers.N.expected.STAGE, steps.K.layers.N.shared_in.SLOT or "
    "initial_state.layers.N.PART";
constexpr std::size_t kLargestNumber = 9999;

/// The next part of a dotted name.
std::string_view next(std::string_view& rest) {
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  const std::string_view part = rest.substr(0, dot);
  rest.remove_prefix(std::min(dot + 1, rest.size()));
  return part;
}

}  // namespace

Activations::Activations(const std::string& path, const std::vector<LayerRole>& layers) : source_(open_arrays(path)) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layer_of_id_.emplace(layers[i].layer_id, i);
  }
  for (const std::string& name : source_->names()) {
    place(name);
  }
  if (steps_ == 0) {
    reject("steps.0.layers.N.x", "missing", "an x for every step and layer", "no step");
  }
}

const Activations::Call& Activations::call(std::size_t step, std::size_t layer, std::int64_t layer_id) const {
  const auto found = calls_.find({step, layer});
  if (found == calls_.end() || found->second.x.empty()) {
    reject(fmt::format("steps.{}.layers.{}.x", step, layer_id), "missing", "an x for every step and layer",
           "no such array");
  }
  return found->second;
}

const std::vector<Activations::Part>& Activations::initial(std::size_t layer) const {
  static const std::vector<Part> none;
  const auto found = initial_.find(layer);
  return found == initial_.end() ? none : found->second;
}

Tensor Activations::read(const std::string& array, DType dtype, std::size_t rank) const {
  Array values = source_->read(array);
  if (values.info.shape.size() == rank + 1 && values.info.shape.front() == 1) {
    values.info.shape.erase(values.info.shape.begin());
  }
  Tensor tensor = tensor_of(values, dtype, source_->path(), array);
  if (tensor.shape().rank() != rank) {
    reject(array, "wrong shape", fmt::format("{} dimensions", rank), "shape " + tensor.shape().text());
  }
  return tensor;
}

void Activations::reject(const std::string& array, const std::string& problem, const std::string& expected,
                         const std::string& found) const {
  throw Error(ErrorKind::input, {source_->path(), array, problem, expected, found});
}

std::size_t Activations::number(std::string_view& rest, const std::string& name) const {
  const std::string_view part = next(rest);
  std::size_t value = 0;
  const auto parsed = std::from_chars(part.data(), part.data() + part.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != part.data() + part.size() || value > kLargestNumber) {
    reject(name, "unknown name", kForms, "no number from 0 to 9999 where one is due");
  }
  return value;
}

void Activations::place(const std::string& name) {
  std::string_view rest = name;
  const std::string_view head = next(rest);
  std::size_t step = 0;
  if (head == "steps") {
    step = number(rest, name);
  } else if (head != "initial_state") {
    reject(name, "unknown name", kForms, name);
  }
  if (next(rest) != "layers") {
    reject(name, "unknown name", kForms, name);
  }
  const auto found = layer_of_id_.find(static_cast<std::int64_t>(number(rest, name)));
  if (found == layer_of_id_.end()) {
    return;
  }
  const std::size_t layer = found->second;
  if (head == "initial_state") {
    initial_[layer].push_back({.name = std::string(rest), .array = name});
    return;
  }
  steps_ = std::max(steps_, step + 1);
  Call& call = calls_[{step, layer}];
  const std::string_view kind = next(rest);
  if (kind == "x" && rest.empty()) {
    call.x = name;
  } else if (kind == "expected" && !rest.empty()) {
    call.expected.push_back({.name = std::string(rest), .array = name});
  } else if (kind == "shared_in" && !rest.empty()) {
    call.shared.push_back({.name = std::string(rest), .array = name});
  } else {
    reject(name, "unknown name", kForms, name);
  }
}

}  // namespace attndiff
