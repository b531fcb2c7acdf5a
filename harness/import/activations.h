#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/import/array_source.h"
#include "reference/contract/config.h"

namespace attndiff {

/// The arrays of a file of activations, by what their names say (import_fixture.h has the names). Arrays of other
/// layers than the chosen ones are left alone; any other name is an Error(input).
class Activations {
 public:
  /// A stage, slot or part of the state.
  struct Part {
    std::string name;
    std::string array;  ///< its name in the file
  };
  struct Call {
    std::string x;
    std::vector<Part> expected;
    std::vector<Part> shared;
  };

  Activations(const std::string& path, const std::vector<LayerRole>& layers);

  /// Calls of the sequence; at least one.
  [[nodiscard]] std::size_t steps() const noexcept { return steps_; }
  /// What is there of one call; throws where its x is not. `layer` is an index into the chosen layers.
  [[nodiscard]] const Call& call(std::size_t step, std::size_t layer, std::int64_t layer_id) const;
  [[nodiscard]] const std::vector<Part>& initial(std::size_t layer) const;

  /// A tensor of `rank` dimensions; one more, leading and of extent 1, is left out.
  [[nodiscard]] Tensor read(const std::string& array, DType dtype, std::size_t rank) const;

  /// Throws Error(input) about an array of this file.
  [[noreturn]] void reject(const std::string& array, const std::string& problem, const std::string& expected,
                           const std::string& found) const;

 private:
  [[nodiscard]] std::size_t number(std::string_view& rest, const std::string& name) const;
  void place(const std::string& name);

  std::unique_ptr<ArraySource> source_;
  std::map<std::int64_t, std::size_t> layer_of_id_;
  std::map<std::pair<std::size_t, std::size_t>, Call> calls_;
  std::map<std::size_t, std::vector<Part>> initial_;
  std::size_t steps_ = 0;
};

}  // namespace attndiff
