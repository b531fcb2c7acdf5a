#include <algorithm>
#include <iterator>

#include "harness/run/coverage.h"

namespace attndiff {

std::vector<std::string> unmet(const Coverage& coverage, std::span<const std::string> names) {
  std::vector<std::string> missing;
  std::copy_if(names.begin(), names.end(), std::back_inserter(missing),
               [&](const std::string& name) { return coverage.at(name) == 0; });
  return missing;
}

}  // namespace attndiff
