#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attndiff {

/// A set of numbers as a user writes it: "3", "0,2-5". Throws Error(usage) that names `option`.
class IntList {
 public:
  static IntList parse(const std::string& text, const std::string& option);

  /// Everything, when nothing was given.
  [[nodiscard]] bool contains(std::int64_t v) const noexcept;
  [[nodiscard]] bool everything() const noexcept { return ranges_.empty(); }
  /// Members of the list that `have` lacks, for the complaint that nothing answers to them.
  [[nodiscard]] std::vector<std::int64_t> missing_from(const std::vector<std::int64_t>& have) const;

 private:
  struct Range {
    std::int64_t first;
    std::int64_t last;
  };
  std::vector<Range> ranges_;
};

}  // namespace attndiff
