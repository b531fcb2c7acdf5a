#include "reference/thread_pool.h"

#include <algorithm>
#include <system_error>

namespace attndiff::reference {

ThreadPool::ThreadPool(int threads)
    : threads_(threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))) {}

void ThreadPool::start_workers() {
  started_ = true;
  workers_.reserve(static_cast<std::size_t>(threads_ - 1));
  try {
    while (static_cast<int>(workers_.size()) < threads_ - 1) {
      workers_.emplace_back([this, seen = round_] { work(seen); });
    }
  } catch (const std::system_error&) {
    // No memory or no number left for another: results do not depend on how many there are.
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  if (count > 1 && !started_) {
    start_workers();
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    next_ = 0;
    failure_ = nullptr;
    busy_ = static_cast<int>(workers_.size());
    ++round_;
  }
  start_.notify_all();
  run_iterations();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

void ThreadPool::parallel_ranges(std::int64_t count, std::int64_t size,
                                 const std::function<void(std::int64_t, std::int64_t)>& body) {
  parallel_for((count + size - 1) / size, [&](std::int64_t i) { body(i * size, std::min(count, (i + 1) * size)); });
}

void ThreadPool::work(std::uint64_t seen) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) {
        return;
      }
      seen = round_;
    }
    run_iterations();
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) {
      done_.notify_one();
    }
  }
}

void ThreadPool::run_iterations() {
  for (;;) {
    std::int64_t i = 0;
    {
      const std::lock_guard lock(mutex_);
      if (next_ >= count_) {
        return;
      }
      i = next_++;
    }
    try {
      (*body_)(i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) {
        failure_ = std::current_exception();
      }
      next_ = count_;
    }
  }
}

}  // namespace attndiff::reference
