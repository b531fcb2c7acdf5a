#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace attndiff {

/// A fixture that mutants are run in.
struct MutantFixture {
  std::string name;
  std::string note;  ///< what of it the mutants need
};
[[nodiscard]] const std::vector<MutantFixture>& mutant_fixtures();

/// Makes fixtures, each once, in a temporary folder that goes with the object.
class MutantFixtures {
 public:
  MutantFixtures();
  MutantFixtures(const MutantFixtures&) = delete;
  MutantFixtures& operator=(const MutantFixtures&) = delete;
  ~MutantFixtures();

  /// Path of the fixture of that name. Throws Error(usage) for a name that is none, Error(output).
  [[nodiscard]] const std::string& path(const std::string& name);

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

 private:
  std::string folder_;
  std::map<std::string, std::string> made_;
};

}  // namespace attndiff
