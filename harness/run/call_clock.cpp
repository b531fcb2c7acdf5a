#include "harness/run/call_clock.h"

#include <algorithm>
#include <string_view>

namespace attndiff {

void CallClock::on_layer_call(std::size_t index) {
  repeats_.clear();
  next_.on_layer_call(index);
}

void CallClock::on_enter(const CallPlace& place) {
  next_.on_enter(place);
  if (place.tokens == 0) {
    return;  // a sequence starts
  }
  if (place.mode != "repeat") {
    enter(place.candidate, place.mode, 0);
    return;
  }
  auto repeat =
      std::find_if(repeats_.begin(), repeats_.end(), [&](const auto& entry) { return entry.first == place.candidate; });
  if (repeat == repeats_.end()) {
    repeat = repeats_.emplace(repeats_.end(), place.candidate, 0);
  }
  enter(place.candidate, "free", ++repeat->second);
}

void CallClock::on_return() {
  leave();
  next_.on_return();
}

double& CallClock::seconds_of(const std::string& backend, const std::string& mode, std::size_t repetition) {
  auto timing = std::find_if(timings_.begin(), timings_.end(),
                             [&](const Timing& t) { return t.backend == backend && t.mode == mode; });
  if (timing == timings_.end()) {
    timing = timings_.insert(timings_.end(), {.backend = backend, .mode = mode, .seconds = {}});
  }
  if (timing->seconds.size() <= repetition) {
    timing->seconds.resize(repetition + 1, 0.0);
  }
  return timing->seconds[repetition];
}

void CallClock::enter(const std::string& backend, const std::string& mode, std::size_t repetition) {
  running_ = &seconds_of(backend, mode, repetition);
  since_ = Clock::now();
}

void CallClock::leave() {
  if (running_ != nullptr) {
    const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
    *running_ += seconds;
    in_calls_ += seconds;
    running_ = nullptr;
  }
}

}  // namespace attndiff
