#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace attndiff::fuzzing {

/// Bytes under a path that any reader can open, in memory where the system has a folder for that. HDF5 wants a path
/// that can be resolved, which an anonymous file has not.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size)
      : path_(folder() + "/attndiff-fuzz-" + std::to_string(getpid())) {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    if (!out.flush()) {
      std::abort();
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { unlink(path_.c_str()); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  static std::string folder() {
    const char* const shared = "/dev/shm";
    return access(shared, W_OK) == 0 ? shared : std::filesystem::temp_directory_path().string();
  }

  std::string path_;
};

}  // namespace attndiff::fuzzing
