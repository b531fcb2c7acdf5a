#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace attndiff {

/// A set of indices on one axis that has a name: "the rotated tail", "the newest token's slot".
struct Landmark {
  std::string text;
  std::function<bool(std::int64_t)> holds;
};

/// One axis of a stage in the field's words.
struct AxisNames {
  std::string one = {};                  ///< "token", "head", "column"
  std::string many = {};                 ///< its plural
  std::vector<Landmark> landmarks = {};  ///< the most telling first
  std::vector<std::string> labels = {};  ///< names of single indices, where each has one; else empty
  std::int64_t block = 0;                ///< entries that belong together on this axis, such as share a scale; 0: none
  std::string block_name = {};           ///< "quantiser block"
};

/// A set of elements that no product of sets on the axes describes: "the in-progress group of each query".
struct Region {
  std::string text;
  std::function<bool(std::span<const std::int64_t>)> holds;  ///< by an index per axis
};

/// What there is to say about where in a stage's tensor an element lies.
struct Landmarks {
  std::vector<AxisNames> axes;  ///< one per axis of the stage's shape
  std::vector<Region> regions;
};

}  // namespace attndiff
