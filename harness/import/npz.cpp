#include "harness/import/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "harness/import/json_file.h"
#include "harness/import/npy.h"
#include "reference/contract/error.h"

namespace attndiff {
namespace {

constexpr std::string_view kSuffix = ".npy";
/// More than any header needs: the longest that a tensor of four extents can have is some 200 bytes.
constexpr std::size_t kHeaderBytes = 65536;

constexpr std::size_t kPieceBytes = std::size_t{16} << 20U;

struct CloseArchive {
  void operator()(zip_t* archive) const noexcept { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* entry) const noexcept { zip_fclose(entry); }
};
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

}  // namespace

class NpzFile::Impl {
 public:
  explicit Impl(std::string path) : path_(std::move(path)) {
    std::ignore = open_input(path_);
    int code = 0;
    archive_.reset(zip_open(path_.c_str(), ZIP_RDONLY, &code));
    if (!archive_) {
      zip_error_t error;
      zip_error_init_with_code(&error, code);
      const std::string reason = zip_error_strerror(&error);
      zip_error_fini(&error);
      reject({}, "not a zip archive that can be read", "an npz file", reason);
    }
    const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
    for (zip_int64_t i = 0; i < count; ++i) {
      zip_stat_t about;
      if (zip_stat_index(archive_.get(), static_cast<zip_uint64_t>(i), 0, &about) != 0 ||
          (about.valid & ZIP_STAT_NAME) == 0 || (about.valid & ZIP_STAT_SIZE) == 0) {
        reject(fmt::format("entry {}", i), "cannot be read", "a named entry", zip_strerror(archive_.get()));
      }
      const std::string_view name = about.name;
      if (!name.ends_with(kSuffix)) {
        reject(about.name, "not an array", "names that end with .npy", about.name);
      }
      if (!sizes_.emplace(name.substr(0, name.size() - kSuffix.size()), Place{static_cast<zip_uint64_t>(i), about.size})
               .second) {
        reject(about.name, "comes twice", "each name once", about.name);
      }
    }
  }

  [[nodiscard]] Array read(const std::string& name) const {
    const auto found = sizes_.find(name);
    if (found == sizes_.end()) {
      reject(name, "missing", "an array of this name", fmt::format("{} others", sizes_.size()));
    }
    const auto [index, size] = found->second;
    const Entry entry(zip_fopen_index(archive_.get(), index, 0));
    if (!entry) {
      reject(name, "cannot be read", "a stored or deflated entry", zip_strerror(archive_.get()));
    }
    std::vector<std::byte> begin(std::min<std::size_t>(size, kHeaderBytes));
    read_into(*entry, name, begin);
    const NpyHeader header = npy_header(begin, path_, name);
    Array array{.info = header.info, .bytes = {}};
    const std::size_t bytes = due_bytes(header, size, name);
    begin.erase(begin.begin(), begin.begin() + static_cast<std::ptrdiff_t>(header.data));
    array.bytes = std::move(begin);
    // Memory grows with what is really there, whatever size the archive claims.
    while (array.bytes.size() < bytes) {
      const std::size_t have = array.bytes.size();
      array.bytes.resize(std::min(bytes, have + kPieceBytes));
      read_into(*entry, name, std::span(array.bytes).subspan(have));
    }
    // The checksum is compared when the end is reached.
    std::byte beyond{};
    if (zip_fread(entry.get(), &beyond, 1) != 0) {
      reject(name, "cannot be read to its end", "the entry's checksum", zip_file_strerror(entry.get()));
    }
    return array;
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool has(const std::string& name) const { return sizes_.contains(name); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    names.reserve(sizes_.size());
    for (const auto& [name, place] : sizes_) {
      names.push_back(name);
    }
    return names;
  }

 private:
  struct Place {
    zip_uint64_t index;
    zip_uint64_t size;
  };

  [[noreturn]] void reject(const std::string& object, const std::string& problem, const std::string& expected,
                           const std::string& found) const {
    throw Error(ErrorKind::input, {path_, object, problem, expected, found});
  }

  /// The elements' bytes by type and shape, which the entry's size has to agree with before anything is allocated.
  [[nodiscard]] std::size_t due_bytes(const NpyHeader& header, zip_uint64_t size, const std::string& name) const {
    std::size_t due = size_of(header.info.type);
    bool overflow = false;
    for (const std::int64_t extent : header.info.shape) {
      overflow = __builtin_mul_overflow(due, static_cast<std::size_t>(extent), &due) || overflow;
    }
    if (overflow || due != size - header.data) {
      reject(name, "its size contradicts type and shape",
             overflow ? "a size that fits 64 bits" : fmt::format("{} bytes", due),
             fmt::format("{} bytes", size - header.data));
    }
    return due;
  }

  void read_into(zip_file_t& entry, const std::string& name, std::span<std::byte> into) const {
    while (!into.empty()) {
      const zip_int64_t got = zip_fread(&entry, into.data(), into.size());
      if (got <= 0) {
        reject(name, "is damaged or cut off", fmt::format("{} more bytes", into.size()),
               got < 0 ? zip_file_strerror(&entry) : "the entry's end");
      }
      into = into.subspan(static_cast<std::size_t>(got));
    }
  }

  std::string path_;
  std::unique_ptr<zip_t, CloseArchive> archive_;
  std::map<std::string, Place> sizes_;
};

NpzFile::NpzFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
NpzFile::~NpzFile() = default;
const std::string& NpzFile::path() const noexcept { return impl_->path(); }
std::vector<std::string> NpzFile::names() const { return impl_->names(); }
bool NpzFile::has(const std::string& name) const { return impl_->has(name); }
Array NpzFile::read(const std::string& name) const { return impl_->read(name); }

}  // namespace attndiff
