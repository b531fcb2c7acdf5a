#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/import/array_source.h"

namespace attndiff {

/// An .npz file: a zip archive of npy files, whose names without ".npy" are the arrays'. Stored and deflated entries
/// are read; an encrypted one, or one that says it is larger than its array, is refused.
class NpzFile final : public ArraySource {
 public:
  explicit NpzFile(const std::string& path);
  ~NpzFile() override;

  [[nodiscard]] const std::string& path() const noexcept override;
  [[nodiscard]] std::vector<std::string> names() const override;
  [[nodiscard]] bool has(const std::string& name) const override;
  [[nodiscard]] Array read(const std::string& name) const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attndiff
