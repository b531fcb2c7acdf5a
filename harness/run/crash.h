#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/run/listener.h"
#include "harness/run/repro.h"

namespace attndiff {

/// Keeps in mind where in a candidate a replay is, and passes everything on to another listener.
class CallTracker final : public ReplayListener {
 public:
  explicit CallTracker(ReplayListener& next) : next_(next) {}

  void on_fixture(std::size_t layer_calls) override { next_.on_fixture(layer_calls); }
  void on_layer_call(std::size_t index) override { next_.on_layer_call(index); }
  void on_enter(const CallPlace& place) override;
  void on_offered(const StageInfo& stage, const StageInfo* next) override;
  void on_return() override;
  void on_comparison(const ComparisonRecord& comparison) override { next_.on_comparison(comparison); }

  /// The candidate's call that runs, or the last one that did.
  [[nodiscard]] const CallPlace& place() const noexcept { return place_; }
  /// Whether the candidate has been entered and has not returned.
  [[nodiscard]] bool inside() const noexcept { return inside_; }
  /// The last stage of the call that was offered, empty before the first.
  [[nodiscard]] const std::string& offered() const noexcept { return offered_; }
  /// The stage that was due next; empty before the first and after the last.
  [[nodiscard]] const std::string& due() const noexcept { return due_; }

 private:
  ReplayListener& next_;
  CallPlace place_;
  bool inside_ = false;
  std::string offered_;
  std::string due_;
};

/// The comparison that stands for a candidate's death in the tracked call: `crashed`, at the stage that was due next,
/// or at `result_stage` where none is known; the reason says why and how far it had come. `repro` gives the reference,
/// the repetitions, the tolerance file and the fixture of the command; the rest is filled in.
[[nodiscard]] ComparisonRecord crashed_comparison(const CallTracker& where, std::string_view why,
                                                  std::string_view result_stage, ReproParts repro);

}  // namespace attndiff
