#include "harness/isolation/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

Error cannot(const std::string& what, int error) {
  return {ErrorKind::internal, fmt::format("cannot {}: {}", what, std::strerror(error))};
}

/// What the child finds at its first descriptors: nothing to read, this process's standard error twice, the pipe.
class Descriptors {
 public:
  explicit Descriptors(int pipe_end) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, pipe_end, ChildProcess::kChannel);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() { posix_spawn_file_actions_destroy(&actions_); }

  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

int milliseconds_until(std::optional<ChildProcess::Clock::time_point> until) {
  if (!until) {
    return -1;
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*until - ChildProcess::Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 1 << 30));
}

}  // namespace

std::string ProcessEnd::text() const {
  return signalled ? fmt::format("signal {} ({})", number, strsignal(number)) : fmt::format("exit status {}", number);
}

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw cannot("make a pipe", errno);
  }
  if (ends[1] == kChannel) {
    // A descriptor put in its own place would keep its close-on-exec flag.
    ends[1] = fcntl(ends[1], F_DUPFD_CLOEXEC, kChannel + 1);
    close(kChannel);
  }
  pipe_ = ends[0];
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast): POSIX
  }
  argv.push_back(nullptr);
  const Descriptors descriptors(ends[1]);
  const int error = posix_spawn(&pid_, argv.front(), descriptors.get(), nullptr, argv.data(), environ);
  close(ends[1]);
  if (error != 0) {
    close(pipe_);
    throw cannot("start " + arguments.front(), error);
  }
}

ChildProcess::~ChildProcess() {
  kill();
  close(pipe_);
}

/// A message is its length in decimal digits, a line's end, and that many bytes.
bool ChildProcess::take_message(std::string& message) {
  const std::size_t head = received_.find('\n', taken_);
  if (head != std::string::npos) {
    std::size_t length = 0;
    const char* end = received_.data() + head;
    if (std::from_chars(received_.data() + taken_, end, length).ptr != end) {
      throw Error(ErrorKind::internal, "a child process sent something that is no message");
    }
    if (received_.size() - (head + 1) >= length) {
      message.assign(received_, head + 1, length);
      taken_ = head + 1 + length;
      return true;
    }
  }
  received_.erase(0, taken_);
  taken_ = 0;
  return false;
}

ChildProcess::Read ChildProcess::next_message(std::string& message, std::optional<Clock::time_point> until) {
  std::array<char, 65536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): read() fills it
  while (!take_message(message)) {
    if (at_end_) {
      return Read::end;
    }
    pollfd readable{.fd = pipe_, .events = POLLIN, .revents = 0};
    const int ready = poll(&readable, 1, milliseconds_until(until));
    if (ready == 0) {
      return Read::late;
    }
    const ssize_t got = ready < 0 ? -1 : read(pipe_, buffer.data(), buffer.size());
    if (got > 0) {
      received_.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      at_end_ = true;
    }
  }
  return Read::message;
}

bool ChildProcess::reap(bool block) noexcept {
  while (!reaped_) {
    const pid_t ended = waitpid(pid_, &status_, block ? 0 : WNOHANG);
    if (ended == 0) {
      return false;
    }
    reaped_ = ended == pid_ || errno != EINTR;
  }
  return true;
}

void ChildProcess::kill() noexcept {
  if (!reap(false)) {
    ::kill(pid_, SIGKILL);
    static_cast<void>(reap(true));
  }
}

ProcessEnd ChildProcess::wait(Clock::duration patience) {
  constexpr auto kLook = std::chrono::milliseconds(2);
  const auto until = Clock::now() + patience;
  while (!reap(false)) {
    if (Clock::now() >= until) {
      kill();
      break;
    }
    std::this_thread::sleep_for(kLook);
  }
  return WIFSIGNALED(status_) ? ProcessEnd{.signalled = true, .number = WTERMSIG(status_)}
                              : ProcessEnd{.signalled = false, .number = WEXITSTATUS(status_)};
}

void send_message(const std::string& message) {
  const std::string framed = fmt::format("{}\n{}", message.size(), message);
  for (std::size_t sent = 0; sent < framed.size();) {
    const ssize_t more = write(ChildProcess::kChannel, framed.data() + sent, framed.size() - sent);
    if (more < 0 && errno != EINTR) {
      _exit(EXIT_FAILURE);  // nobody is left to tell
    }
    sent += more > 0 ? static_cast<std::size_t>(more) : 0;
  }
}

void die_with_parent() noexcept { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace attndiff
