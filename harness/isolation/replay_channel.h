#pragma once

#include <optional>
#include <string>

#include "harness/compare/report.h"
#include "harness/run/listener.h"
#include "reference/contract/error.h"

namespace attndiff {

/// What a child process tells its parent about a replay, a message (CBOR) for each event.
class ReplaySender final : public ReplayListener {
 public:
  void on_fixture(std::size_t layer_calls) override;
  void on_layer_call(std::size_t index) override;
  void on_enter(const CallPlace& place) override;
  void on_offered(const StageInfo& stage, const StageInfo* next) override;
  void on_return() override;
  void on_comparison(const ComparisonRecord& comparison) override;

  /// The last message of a replay that came to its end; comparisons have been sent before.
  void done(const FixtureReport& report);
  /// The last message of one that ended with an error outside the fixture.
  void failed(const Error& error);
};

/// The parent's side: passes events to a listener as if the replay ran here.
class ReplayReceiver {
 public:
  explicit ReplayReceiver(ReplayListener& listener) : listener_(listener) {}

  /// Takes one message. Throws Error for one that no ReplaySender sends.
  void take(const std::string& message);

  /// The report's rest, without its comparisons, once the replay has come to its end.
  [[nodiscard]] const std::optional<FixtureReport>& done() const noexcept { return done_; }
  /// The error outside the fixture that it ended with.
  [[nodiscard]] const std::optional<Error>& failed() const noexcept { return failed_; }

 private:
  ReplayListener& listener_;
  std::optional<FixtureReport> done_;
  std::optional<Error> failed_;
};

}  // namespace attndiff
