#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/backend.h"

namespace attndiff {

/// Whether a backend can run here, and if not why.
struct BackendStatus {
  std::string name;
  bool usable = false;
  std::string detail;  ///< version and device, or the reason
};

/// Every backend this program knows by name, usable or not.
[[nodiscard]] std::vector<BackendStatus> backend_statuses(int threads);

/// A backend by name: "cpu", "cuda", "cuda:1", "recorded". Throws Error(usage) for a name nobody knows, listing those
/// known, and Error(unavailable) with the reason for one that cannot run here.
[[nodiscard]] std::unique_ptr<Backend> make_backend(const std::string& name, int threads);

/// The candidate to use when none is named: cuda where a GPU is usable, else recorded.
[[nodiscard]] std::string default_candidate();

}  // namespace attndiff
