#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "harness/compare/report.h"
#include "harness/run/listener.h"

namespace attndiff {

/// Adds up how long each backend spends in its calls and how long judging them takes, and passes everything on to
/// another listener. Runs of mode "repeat" count as repetitions of the free run.
class CallClock final : public ReplayListener {
 public:
  explicit CallClock(ReplayListener& next) : next_(next) {}

  void on_fixture(std::size_t layer_calls) override { next_.on_fixture(layer_calls); }
  void on_layer_call(std::size_t index) override;
  void on_enter(const CallPlace& place) override;
  void on_offered(const StageInfo& stage, const StageInfo* next) override { next_.on_offered(stage, next); }
  void on_return() override;
  void on_comparison(const ComparisonRecord& comparison) override { next_.on_comparison(comparison); }

  /// Runs something that is done for the reference: its call ("reference"), or what its results exercise ("coverage").
  template <typename Call>
  void time(const std::string& backend, const std::string& mode, Call call) {
    enter(backend, mode, 0);
    call();
    leave();
  }

  /// Runs what calls a candidate and judges it. What is left without the calls counts as "MODE judging": bounds, the
  /// reference that follows, comparison and details.
  template <typename Run>
  void time_judging(const std::string& candidate, const std::string& mode, Run run) {
    const Clock::time_point begin = Clock::now();
    const double calls_before = in_calls_;
    run();
    const double all = std::chrono::duration<double>(Clock::now() - begin).count();
    seconds_of(candidate, mode + " judging", 0) += all - (in_calls_ - calls_before);
  }

  [[nodiscard]] const std::vector<Timing>& timings() const noexcept { return timings_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// The sum that such calls add to.
  double& seconds_of(const std::string& backend, const std::string& mode, std::size_t repetition);
  void enter(const std::string& backend, const std::string& mode, std::size_t repetition);
  void leave();

  ReplayListener& next_;
  std::vector<Timing> timings_;
  std::vector<std::pair<std::string, std::size_t>> repeats_;  ///< by candidate: repetitions of the layer call so far
  double* running_ = nullptr;                                 ///< what the call in progress adds to
  double in_calls_ = 0;                                       ///< seconds of all calls
  Clock::time_point since_;
};

}  // namespace attndiff
