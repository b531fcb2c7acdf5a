#include "reports/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "harness/files/identity.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

[[noreturn]] void refuse(const std::string& path, std::string problem, int error) {
  throw Error(ErrorKind::output, {.file = path,
                                  .object = {},
                                  .problem = std::move(problem),
                                  .expected = {},
                                  .found = std::generic_category().message(error)});
}

/// An open file descriptor; removes the file it was opened on unless told to keep it.
class OutputFile {
 public:
  OutputFile(std::string path, std::string reported, int flags, bool temporary)
      : path_(std::move(path)), reported_(std::move(reported)), temporary_(temporary) {
    constexpr int kReadWriteForAll = 0666;  // before the umask
    descriptor_ = ::open(path_.c_str(), flags | O_WRONLY | O_CLOEXEC, kReadWriteForAll);
    if (descriptor_ < 0) {
      temporary_ = false;
      refuse(reported_, "cannot be created", errno);
    }
  }
  ~OutputFile() {
    if (descriptor_ >= 0) {
      static_cast<void>(::close(descriptor_));
    }
    if (temporary_) {
      static_cast<void>(::unlink(path_.c_str()));
    }
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile(OutputFile&&) = delete;
  OutputFile& operator=(OutputFile&&) = delete;

  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno != EINTR) {
        refuse(reported_, "cannot be written", errno);
      }
      text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
  }

  /// Only here do some file systems report a full disk.
  void sync_and_close() {
    if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) {
      refuse(reported_, "cannot be written", errno);
    }
    close();
  }

  void close() {
    if (::close(std::exchange(descriptor_, -1)) != 0) {
      refuse(reported_, "cannot be written", errno);
    }
  }

  void rename_to(const std::string& path) {
    if (std::rename(path_.c_str(), path.c_str()) != 0) {
      refuse(reported_, "cannot be given its final name", errno);
    }
    temporary_ = false;
  }

 private:
  std::string path_;
  std::string reported_;
  int descriptor_ = -1;
  bool temporary_;
};

}  // namespace

void write_atomically(const std::string& path, std::string_view text) {
  const WriteTarget target = write_target(path);
  if (target.kind == FileKind::folder || target.kind == FileKind::other) {
    OutputFile direct(path, path, 0, false);
    direct.write(text);
    direct.close();
    return;
  }
  // A report reached through a symbolic link replaces the link's target, not the link.
  OutputFile temporary(fmt::format("{}.{}.tmp", target.name, ::getpid()), path, O_CREAT | O_TRUNC, true);
  temporary.write(text);
  temporary.sync_and_close();
  temporary.rename_to(target.name);
}

}  // namespace attndiff
