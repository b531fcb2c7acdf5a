#include "harness/run/call_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace attndiff {
namespace {

using ::testing::SizeIs;

constexpr auto kPause = std::chrono::milliseconds(5);

void call(CallClock& clock, const char* mode, std::int64_t tokens = 1) {
  CallPlace place;
  place.candidate = "c";
  place.mode = mode;
  place.tokens = tokens;
  clock.on_enter(place);
  std::this_thread::sleep_for(kPause);
  clock.on_return();
}

TEST(CallClock, AddsUpCallsByBackendAndModeAndRepetition) {
  ReplayListener nobody;
  CallClock clock(nobody);
  call(clock, "free", 0);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    clock.on_layer_call(layer);
    clock.time("r", "reference", [] { std::this_thread::sleep_for(kPause); });
    call(clock, "free");
    call(clock, "production");
    call(clock, "repeat");
    call(clock, "repeat");
  }
  ASSERT_THAT(clock.timings(), SizeIs(3)) << "repetitions belong to the free run, and a sequence's start to none";
  EXPECT_EQ(clock.timings()[0].mode, "reference");
  EXPECT_EQ(clock.timings()[0].backend, "r");
  EXPECT_THAT(clock.timings()[0].seconds, SizeIs(1));
  EXPECT_EQ(clock.timings()[1].mode, "free");
  ASSERT_THAT(clock.timings()[1].seconds, SizeIs(3));
  EXPECT_EQ(clock.timings()[2].mode, "production");
  for (const Timing& timing : clock.timings()) {
    for (const double seconds : timing.seconds) {
      EXPECT_GE(seconds, 0.010) << "two calls of 5 ms";
      EXPECT_LT(seconds, 5);
    }
  }
}

TEST(CallClock, JudgingIsWhatACallDoesNotTake) {
  ReplayListener nobody;
  CallClock clock(nobody);
  constexpr auto kLong = std::chrono::milliseconds(300);
  const auto judged = [&](auto in_call, auto after) {
    clock.time_judging("c", "lockstep", [&] {
      CallPlace place;
      place.candidate = "c";
      place.mode = "lockstep";
      place.tokens = 1;
      clock.on_enter(place);
      std::this_thread::sleep_for(in_call);
      clock.on_return();
      std::this_thread::sleep_for(after);
    });
  };
  judged(kLong, kPause);
  judged(kLong, kPause);
  ASSERT_THAT(clock.timings(), SizeIs(2));
  EXPECT_EQ(clock.timings()[0].mode, "lockstep");
  EXPECT_GE(clock.timings()[0].seconds.at(0), 0.6);
  EXPECT_EQ(clock.timings()[1].backend, "c");
  EXPECT_EQ(clock.timings()[1].mode, "lockstep judging");
  ASSERT_THAT(clock.timings()[1].seconds, SizeIs(1));
  EXPECT_GE(clock.timings()[1].seconds[0], 0.010);
  EXPECT_LT(clock.timings()[1].seconds[0], clock.timings()[0].seconds[0]);
}

TEST(CallClock, WhatIsNotACallAddsNothing) {
  ReplayListener nobody;
  CallClock clock(nobody);
  clock.on_return();
  EXPECT_TRUE(clock.timings().empty());
}

}  // namespace
}  // namespace attndiff
