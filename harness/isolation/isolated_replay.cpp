#include "harness/isolation/isolated_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "harness/isolation/child_process.h"
#include "harness/isolation/replay_channel.h"
#include "harness/run/crash.h"
#include "reference/contract/families.h"

namespace attndiff {
namespace {

/// How long a child may take to end after its last message; closing a GPU's context takes a moment.
constexpr std::chrono::seconds kPatience{20};

/// Keeps the comparisons that come in.
class Collector final : public ReplayListener {
 public:
  explicit Collector(ReplayListener& next) : next_(next) {}

  void on_fixture(std::size_t layer_calls) override { next_.on_fixture(layer_calls); }
  void on_layer_call(std::size_t index) override { next_.on_layer_call(index); }
  void on_enter(const CallPlace& place) override { next_.on_enter(place); }
  void on_offered(const StageInfo& stage, const StageInfo* next) override { next_.on_offered(stage, next); }
  void on_return() override { next_.on_return(); }
  void on_comparison(const ComparisonRecord& comparison) override {
    comparisons.push_back(comparison);
    next_.on_comparison(comparison);
  }

  std::vector<ComparisonRecord> comparisons;

 private:
  ReplayListener& next_;
};

class FixtureInChildren {
 public:
  FixtureInChildren(const std::string& path, const Isolation& isolation, ReplayListener& listener)
      : isolation_(isolation), listener_(listener), remaining_(isolation.candidates) {
    report_.path = path;
  }

  FixtureReport run() {
    while (!remaining_.empty() && run_child()) {
    }
    report_.verdict = overall_verdict(report_);
    return std::move(report_);
  }

 private:
  /// Runs the remaining candidates in one child; true when some are left to run in another.
  bool run_child() {
    Collector collector(listener_);
    CallTracker tracker(collector);
    ReplayReceiver receiver(tracker);
    ChildProcess child(isolation_.command(remaining_));
    const bool in_time = listen(child, receiver, tracker);
    if (receiver.failed()) {
      throw Error(*receiver.failed());
    }
    if (receiver.done()) {
      static_cast<void>(child.wait(kPatience));
      finish(*receiver.done(), std::move(collector.comparisons));
      return false;
    }
    if (!in_time) {
      child.kill();
    }
    const ProcessEnd end = child.wait(kPatience);
    const std::string why = in_time ? "its process ended with " + end.text()
                                    : fmt::format("it did not return within {} s", isolation_.time_limit.count());
    if (!tracker.inside()) {
      report_.error =
          fmt::format("{}: the replay's process ended outside every candidate, with {}", report_.path, end.text());
      append(std::move(collector.comparisons));
      return false;
    }
    blame(tracker, why, std::move(collector.comparisons));
    return true;
  }

  /// Takes the child's messages until its end; false when a call of the candidate took too long.
  bool listen(ChildProcess& child, ReplayReceiver& receiver, const CallTracker& tracker) const {
    std::optional<ChildProcess::Clock::time_point> until;
    std::string message;
    while (true) {
      switch (child.next_message(message, until)) {
        case ChildProcess::Read::end:
          return true;
        case ChildProcess::Read::late:
          return false;
        case ChildProcess::Read::message:
          break;
      }
      const bool was_inside = tracker.inside();
      receiver.take(message);
      if (!tracker.inside()) {
        until.reset();
      } else if (!was_inside && isolation_.time_limit.count() > 0) {
        until = ChildProcess::Clock::now() + isolation_.time_limit;
      }
    }
  }

  /// One candidate is crashed; what the others had been compared in comes again.
  void blame(const CallTracker& tracker, const std::string& why, std::vector<ComparisonRecord> comparisons) {
    const std::string& candidate = tracker.place().candidate;
    comparisons.erase(std::remove_if(comparisons.begin(), comparisons.end(),
                                     [&](const ComparisonRecord& c) { return c.candidate != candidate; }),
                      comparisons.end());
    ReproParts repro;
    repro.reference = isolation_.reference;
    repro.repeat = isolation_.repeat;
    repro.tolerance_file = isolation_.tolerance_file;
    repro.fixture = report_.path;
    const std::string_view result = family_named(ModelConfig{}.family).stages.back().name;
    comparisons.push_back(crashed_comparison(tracker, why, result, std::move(repro)));
    listener_.on_comparison(comparisons.back());
    append(std::move(comparisons));
    remaining_.erase(std::remove(remaining_.begin(), remaining_.end(), candidate), remaining_.end());
  }

  void finish(FixtureReport rest, std::vector<ComparisonRecord> comparisons) {
    append(std::move(comparisons));
    rest.comparisons = std::move(report_.comparisons);
    rest.path = report_.path;
    report_ = std::move(rest);
  }

  void append(std::vector<ComparisonRecord> comparisons) {
    std::move(comparisons.begin(), comparisons.end(), std::back_inserter(report_.comparisons));
  }

  const Isolation& isolation_;
  ReplayListener& listener_;
  std::vector<std::string> remaining_;
  FixtureReport report_;
};

}  // namespace

FixtureReport replay_isolated(const std::string& path, const Isolation& isolation, ReplayListener& listener) {
  return FixtureInChildren(path, isolation, listener).run();
}

}  // namespace attndiff
