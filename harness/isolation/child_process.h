#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace attndiff {

/// How a process ended.
struct ProcessEnd {
  bool signalled = false;
  int number = 0;  ///< exit status, or the signal

  /// "exit status 3", "signal 11 (Segmentation fault)".
  [[nodiscard]] std::string text() const;
};

/// A process that sends messages to this one over a pipe, each framed by send_message(). It reads nothing, and what it
/// prints goes to this process's standard error. It does not outlive the object, nor (as far as it calls
/// die_with_parent()) this process.
class ChildProcess {
 public:
  using Clock = std::chrono::steady_clock;

  /// The descriptor at which the child finds its end of the pipe.
  static constexpr int kChannel = 3;

  /// Starts the program arguments[0] with these arguments. Throws Error(internal) when that fails.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  enum class Read { message, end, late };

  /// The child's next message; `end` once it has closed the pipe (a message cut short is dropped: the child died while
  /// writing it); `late` when the time is over first. Throws Error(internal) for what send_message() does not write.
  [[nodiscard]] Read next_message(std::string& message, std::optional<Clock::time_point> until);

  /// Ends the child at once; no-op when it has ended.
  void kill() noexcept;

  /// Waits for the child's end; kills it when it is not over by then.
  [[nodiscard]] ProcessEnd wait(Clock::duration patience);

 private:
  [[nodiscard]] bool take_message(std::string& message);
  [[nodiscard]] bool reap(bool block) noexcept;

  pid_t pid_ = -1;
  int pipe_ = -1;
  bool reaped_ = false;
  int status_ = 0;
  bool at_end_ = false;
  std::string received_;
  std::size_t taken_ = 0;  ///< of `received_`, already handed out
};

/// Sends one message, any bytes, to the parent. A parent that no longer listens ends the process.
void send_message(const std::string& message);

/// Called by a child: it gets SIGKILL when its parent ends.
void die_with_parent() noexcept;

}  // namespace attndiff
