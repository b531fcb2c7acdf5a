#include "fuzz/edit.h"

#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/edit_attributes.h"
#include "fuzz/edit_datasets.h"
#include "fuzz/memory_file.h"
#include "fuzz/random.h"
#include "harness/fixture/hdf5.h"

namespace attndiff::fuzzing {
namespace {

using h5::Handle;

/// Names of everything in a file, from the root.
std::vector<std::string> objects_of(hid_t file) {
  std::vector<std::string> names;
  const auto keep = [](hid_t, const char* name, const H5O_info_t*, void* into) -> herr_t {
    static_cast<std::vector<std::string>*>(into)->push_back(std::string(name) == "." ? "/" : "/" + std::string(name));
    return 0;
  };
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, keep, &names, H5O_INFO_BASIC);
  return names;
}

/// A path beside an object under another name: a misspelt one, the next number, a name from elsewhere.
std::string other_name(const std::string& object, const std::vector<std::string>& objects, Random& random) {
  const std::size_t slash = object.rfind('/');
  const std::string folder = object.substr(0, slash + 1);
  const std::string& elsewhere = random.any(objects);
  switch (random.below(3)) {
    case 0:
      return object + "_";
    case 1:
      return folder + elsewhere.substr(elsewhere.rfind('/') + 1);
    default:
      return folder + std::string("000") + std::to_string(random.below(8));
  }
}

void edit_links(hid_t file, const std::string& object, const std::vector<std::string>& objects, Random& random) {
  const std::string name = other_name(object, objects, random);
  const std::string& target = random.any(objects);
  switch (random.below(6)) {
    case 0:
      H5Ldelete(file, object.c_str(), H5P_DEFAULT);
      break;
    case 1:
      H5Lmove(file, object.c_str(), file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
      break;
    case 2:
      H5Lcreate_hard(file, target.c_str(), file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
      break;
    case 3:
      H5Ldelete(file, object.c_str(), H5P_DEFAULT);
      H5Lcreate_soft(target.c_str(), file, object.c_str(), H5P_DEFAULT, H5P_DEFAULT);
      break;
    case 4:
      H5Ldelete(file, object.c_str(), H5P_DEFAULT);
      H5Lcreate_external("absent.h5", "/x", file, object.c_str(), H5P_DEFAULT, H5P_DEFAULT);
      break;
    default:
      const Handle group(H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  }
}

bool is_dataset(hid_t file, const std::string& object) {
  H5O_info_t info{};
  return H5Oget_info_by_name2(file, object.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
         info.type == H5O_TYPE_DATASET;
}

/// An object that an earlier edit took away makes this one nothing.
void edit_once(hid_t file, const std::vector<std::string>& objects, Random& random) {
  const std::string& object = random.any(objects);
  switch (random.below(is_dataset(file, object) ? 6 : 3)) {
    case 0:
      edit_links(file, object, objects, random);
      break;
    case 1:
    case 2:
      edit_attribute(file, object, random);
      break;
    default:
      edit_dataset(file, object, random);
  }
}

bool edit(const std::string& path, unsigned seed) {
  h5::prepare_library();
  Random random(seed);
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  if (!file) {
    return false;
  }
  const std::vector<std::string> objects = objects_of(file.get());
  for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
    edit_once(file.get(), objects, random);
  }
  return file.reset();
}

/// HDF5 1.10 crashes on some sequences of edits as well: true where the child came through.
template <typename Edit>
bool in_child(Edit edit) {
  const pid_t child = fork();
  if (child == 0) {
    __sanitizer_set_death_callback(nullptr);  // the fuzzer's own would report this as a finding
    std::signal(SIGABRT, SIG_DFL);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    _exit(edit() ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::size_t edit_fixture(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  const MemoryFile copy(data, size);
  if (!in_child([&] { return edit(copy.path(), seed); })) {
    return size;
  }
  std::ifstream in(copy.path(), std::ios::binary);
  const std::string edited{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (edited.empty() || edited.size() > most) {
    return size;
  }
  std::copy(edited.begin(), edited.end(), data);
  return edited.size();
}

}  // namespace attndiff::fuzzing
