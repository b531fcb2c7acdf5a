#pragma once

#include <string>
#include <vector>

namespace attndiff {

/// A part of the fixtures: number `index` (from 1) of `count`.
struct Shard {
  std::size_t index = 1;
  std::size_t count = 1;

  /// "2/4". Throws Error(usage).
  static Shard parse(const std::string& text);
};

/// The fixture files that paths name: a file is itself, a folder every *.h5 and *.hdf5 below it. Sorted, each file
/// once, by the path that leads to it first. What does not exist or cannot be reached, a folder in a folder too, is
/// kept, so that reading it reports it.
[[nodiscard]] std::vector<std::string> collect_fixtures(const std::vector<std::string>& paths, const Shard& shard);

}  // namespace attndiff
