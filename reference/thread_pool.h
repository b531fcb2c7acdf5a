#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attndiff::reference {

/// A fixed set of threads for loops whose iterations do not depend on one another. Work is cut by the caller, never
/// by the number of threads, so results are the same for every thread count.
class ThreadPool {
 public:
  /// `threads` >= 1 counts the calling thread; 0 takes the machine's hardware threads. They start with the first loop
  /// that has work for them, so that a process may still fork safely before. Where the machine starts no more of them,
  /// loops run on those that there are.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const noexcept { return threads_; }

  /// Calls body(0) ... body(count - 1), each once, in any order, and returns when all are done. The first exception
  /// a body throws is thrown here after the others have stopped. Not reentrant.
  void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body);

  /// Calls body(begin, end) for pieces of at most `size` >= 1 of 0 ... count - 1.
  void parallel_ranges(std::int64_t count, std::int64_t size,
                       const std::function<void(std::int64_t, std::int64_t)>& body);

 private:
  void start_workers();
  /// Takes part in the loops after number `seen`.
  void work(std::uint64_t seen);
  void run_iterations();

  int threads_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const std::function<void(std::int64_t)>* body_ = nullptr;
  std::int64_t count_ = 0;
  std::int64_t next_ = 0;
  int busy_ = 0;
  std::uint64_t round_ = 0;
  bool stop_ = false;
  bool started_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> workers_;
};

}  // namespace attndiff::reference
