#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "harness/compare/report.h"
#include "harness/run/listener.h"

namespace attndiff {

/// Adds up how long each candidate spends in its calls, and passes everything on to another listener. Runs of mode
/// "repeat" count as repetitions of the free run.
class CallClock final : public ReplayListener {
 public:
  explicit CallClock(ReplayListener& next) : next_(next) {}

  void on_fixture(std::size_t layer_calls) override { next_.on_fixture(layer_calls); }
  void on_layer_call(std::size_t index) override;
  void on_enter(const CallPlace& place) override;
  void on_offered(const StageInfo& stage, const StageInfo* next) override { next_.on_offered(stage, next); }
  void on_return() override;
  void on_comparison(const ComparisonRecord& comparison) override { next_.on_comparison(comparison); }

  /// Runs the reference's call.
  template <typename Call>
  void time_reference(const std::string& name, Call call) {
    enter(name, "reference", 0);
    call();
    leave();
  }

  [[nodiscard]] const std::vector<Timing>& timings() const noexcept { return timings_; }

 private:
  using Clock = std::chrono::steady_clock;

  void enter(const std::string& backend, const std::string& mode, std::size_t repetition);
  void leave();

  ReplayListener& next_;
  std::vector<Timing> timings_;
  std::vector<std::pair<std::string, std::size_t>> repeats_;  ///< by candidate: repetitions of the layer call so far
  double* running_ = nullptr;                                 ///< what the call in progress adds to
  Clock::time_point since_;
};

}  // namespace attndiff
