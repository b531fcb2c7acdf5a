#include "harness/files/identity.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "reference/contract/error.h"

namespace attndiff {
namespace {

namespace fs = std::filesystem;

/// The path behind the links at its end; nothing where there are more of them than Linux follows.
std::optional<fs::path> behind_links(fs::path path) {
  constexpr int kMostLinks = 40;
  for (int i = 0; i <= kMostLinks; ++i) {
    std::error_code no_link;
    const fs::path target = fs::read_symlink(path, no_link);
    if (no_link) {
      return path;
    }
    path = path.parent_path() / target;  // an absolute target stands alone
  }
  return std::nullopt;
}

FileKind kind_of(const fs::file_status& status) noexcept {
  switch (status.type()) {
    case fs::file_type::not_found:
      return FileKind::absent;
    case fs::file_type::regular:
      return FileKind::regular;
    case fs::file_type::directory:
      return FileKind::folder;
    default:
      return FileKind::other;
  }
}

}  // namespace

WriteTarget write_target(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  const std::optional<fs::path> end = behind_links(path);
  if (status.type() == fs::file_type::none || !end) {
    throw Error(
        ErrorKind::output,
        {.file = path, .object = {}, .problem = "cannot be reached", .expected = {}, .found = failed.message()});
  }
  // /dev/stdout and its like are links to something that has no path, or to a file that has one.
  std::error_code nowhere;
  const fs::path real = fs::canonical(path, nowhere);
  return {.name = (nowhere ? *end : real).string(), .kind = kind_of(status)};
}

std::string file_identity(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  if (!failed) {
    return real.string();
  }
  const fs::path whole = fs::absolute(behind_links(path).value_or(path), failed).lexically_normal();
  const fs::path resolved = fs::weakly_canonical(whole, failed);
  return (failed ? whole : resolved).string();
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code absent;
  return std::filesystem::equivalent(a, b, absent) || file_identity(a) == file_identity(b);
}

}  // namespace attndiff
