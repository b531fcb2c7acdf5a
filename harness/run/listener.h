#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/compare/report.h"
#include "reference/contract/stage.h"

namespace attndiff {

/// A candidate's call of one layer.
struct CallPlace {
  std::string candidate;  ///< the backend's name
  std::string mode;       ///< of the run: "free", "production", "repeat", "lockstep"
  std::size_t step = 0;   ///< index in the fixture
  std::int64_t start_pos = 0;
  std::int64_t tokens = 0;
  std::size_t layer = 0;  ///< index in the fixture
  std::int64_t layer_id = 0;
  std::string layer_kind;  ///< kind_of(role)
};

/// Told what a replay does while it does it. A process that watches another one learns from it where that one died.
class ReplayListener {
 public:
  ReplayListener() = default;
  ReplayListener(const ReplayListener&) = delete;
  ReplayListener& operator=(const ReplayListener&) = delete;
  virtual ~ReplayListener() = default;

  /// Before a fixture's first call: how many layer calls it has.
  virtual void on_fixture(std::size_t /*layer_calls*/) {}
  /// Before the reference runs a layer call, counted from 0.
  virtual void on_layer_call(std::size_t /*index*/) {}
  /// The candidate is entered, by a call or, before its first one, to start a sequence (`step` and what follows unset).
  virtual void on_enter(const CallPlace& /*place*/) {}
  /// The candidate has offered a stage to an observer that wanted it; `next` is the next one that it is due to offer,
  /// null after the last.
  virtual void on_offered(const StageInfo& /*stage*/, const StageInfo* /*next*/) {}
  /// The candidate has returned.
  virtual void on_return() {}
  virtual void on_comparison(const ComparisonRecord& /*comparison*/) {}
};

}  // namespace attndiff
