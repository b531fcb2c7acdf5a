#include "reference/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#ifdef __linux__
#include <pthread.h>
#endif

#include <atomic>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace attndiff::reference {
namespace {

using testing::Each;

TEST(ThreadPool, CountsTheCallingThread) {
  EXPECT_EQ(ThreadPool(1).threads(), 1);
  EXPECT_EQ(ThreadPool(3).threads(), 3);
  EXPECT_GE(ThreadPool(0).threads(), 1);
}

class ThreadPoolOf : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolOf, RunsEveryIndexOnce) {
  ThreadPool pool(GetParam());
  for (const std::int64_t count : {1, 2, 3, 7, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
    pool.parallel_for(count, [&](std::int64_t i) { ++runs.at(static_cast<std::size_t>(i)); });
    for (const auto& run : runs) {
      ASSERT_EQ(run.load(), 1) << count;
    }
  }
}

TEST_P(ThreadPoolOf, IsDoneWhenItReturns) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> values(5, 0);  // not atomic: written by one thread each, read after the loop
    pool.parallel_for(5, [&](std::int64_t i) { values[static_cast<std::size_t>(i)] = round; });
    ASSERT_THAT(values, Each(round));
  }
}

TEST_P(ThreadPoolOf, RunsNothingForACountOfZero) {
  ThreadPool pool(GetParam());
  std::atomic<int> runs{0};
  pool.parallel_for(0, [&](std::int64_t) { ++runs; });
  EXPECT_EQ(runs.load(), 0);
}

TEST_P(ThreadPoolOf, ThrowsABodysExceptionAndCanBeUsedAgain) {
  ThreadPool pool(GetParam());
  const auto failing = [&](std::int64_t i) {
    if (i == 3) {
      throw std::runtime_error("index 3");
    }
  };
  for (int round = 0; round < 50; ++round) {
    try {
      pool.parallel_for(100, failing);
      ADD_FAILURE() << "the exception was lost";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "index 3");
    }
    std::atomic<int> runs{0};
    pool.parallel_for(100, [&](std::int64_t) { ++runs; });
    EXPECT_EQ(runs.load(), 100);
  }
}

TEST_P(ThreadPoolOf, StopsHandingOutIndicesAfterAnException) {
  ThreadPool pool(GetParam());
  std::atomic<int> runs{0};
  EXPECT_THROW(pool.parallel_for(1'000'000,
                                 [&](std::int64_t) {
                                   ++runs;
                                   throw std::logic_error("always");
                                 }),
               std::logic_error);
  EXPECT_LE(runs.load(), GetParam());
}

TEST_P(ThreadPoolOf, LoopsOfOneBeforeTheThreadsStartDoNotCount) {
  ThreadPool pool(GetParam());
  int runs = 0;
  for (int i = 0; i < 3; ++i) {
    pool.parallel_for(1, [&](std::int64_t) { ++runs; });
  }
  EXPECT_EQ(runs, 3);
  for (int round = 0; round < 100; ++round) {
    std::vector<int> values(7, 0);
    pool.parallel_for(7, [&](std::int64_t i) { values[static_cast<std::size_t>(i)] = round; });
    ASSERT_THAT(values, Each(round));
  }
}

TEST_P(ThreadPoolOf, RangesCoverEveryIndexOnce) {
  ThreadPool pool(GetParam());
  for (const std::int64_t count : {0, 1, 6, 7, 8, 100}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
    pool.parallel_ranges(count, 7, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_LE(end - begin, 7);
      for (std::int64_t i = begin; i < end; ++i) {
        ++runs.at(static_cast<std::size_t>(i));
      }
    });
    for (const auto& run : runs) {
      ASSERT_EQ(run.load(), 1) << count;
    }
  }
}

#ifdef __linux__
TEST(ThreadPool, StartsItsThreadsWithTheFirstLoop) {
  const auto running = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const auto before = running();
  ThreadPool pool(4);
  EXPECT_EQ(running(), before);
  EXPECT_EQ(pool.threads(), 4);
  pool.parallel_for(2, [](std::int64_t) {});
  EXPECT_EQ(running(), before + 3);
}

/// What a thread's stack may be, for the threads started while this lives.
class StackSize {
 public:
  explicit StackSize(std::size_t bytes) {
    pthread_getattr_default_np(&before_);
    pthread_attr_t attributes;
    pthread_getattr_default_np(&attributes);
    pthread_attr_setstacksize(&attributes, bytes);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  StackSize(const StackSize&) = delete;
  StackSize& operator=(const StackSize&) = delete;
  ~StackSize() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_{};
};

TEST(ThreadPool, GoesOnWithTheThreadsThatStart) {
  const StackSize more_than_there_is(std::size_t{1} << 46U);
  ThreadPool pool(4);
  std::atomic<int> runs{0};
  for (int round = 0; round < 3; ++round) {
    EXPECT_NO_THROW(pool.parallel_for(10, [&](std::int64_t) { ++runs; }));
  }
  EXPECT_EQ(runs.load(), 30);
}
#endif

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, testing::Values(1, 2, 3, 8),
                         [](const auto& threads) { return "threads" + std::to_string(threads.param); });

}  // namespace
}  // namespace attndiff::reference
