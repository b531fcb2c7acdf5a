#include "fuzz/edit_datasets.h"

#include <algorithm>
#include <array>
#include <vector>

#include "harness/fixture/hdf5.h"
#include "harness/fixture/types.h"

namespace attndiff::fuzzing {
namespace {

using h5::Handle;

/// Larger datasets are left alone: inputs have to stay small.
constexpr hssize_t kMostElements = 1 << 14;

struct Contents {
  std::vector<hsize_t> extents;
  std::vector<unsigned char> bytes;
};

Contents contents_of(hid_t dataset, hid_t type) {
  Contents contents;
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int rank = H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  if (count < 0 || count > kMostElements || rank < 0) {
    return contents;
  }
  contents.extents.assign(extents.begin(), extents.begin() + rank);
  contents.bytes.resize(static_cast<std::size_t>(count) * H5Tget_size(type));
  if (!contents.bytes.empty()) {
    H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, contents.bytes.data());
  }
  return contents;
}

void change_values(hid_t dataset, Random& random) {
  const Handle type(H5Dget_type(dataset), H5Tclose);
  Contents contents = contents_of(dataset, type.get());
  if (contents.bytes.empty()) {
    return;
  }
  constexpr std::array<unsigned char, 8> kBytes{0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe, 0xc0, 0x3f};
  for (std::uint64_t left = 1 + random.below(6); left > 0; --left) {
    const std::size_t at = random.below(contents.bytes.size());
    const std::size_t end = std::min(contents.bytes.size(), at + 1 + random.below(4));
    std::fill(contents.bytes.begin() + static_cast<std::ptrdiff_t>(at),
              contents.bytes.begin() + static_cast<std::ptrdiff_t>(end), random.any(kBytes));
  }
  H5Dwrite(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, contents.bytes.data());
}

Handle any_type(hid_t old, Random& random) {
  switch (random.below(12)) {
    case 0:
      return h5::storage_type(DType::bf16);
    case 1:
      return {H5Tcopy(H5T_IEEE_F32LE), H5Tclose};
    case 2:
      return {H5Tcopy(H5T_IEEE_F32BE), H5Tclose};
    case 3:
      return {H5Tcopy(H5T_STD_U16LE), H5Tclose};
    case 4:
      return {H5Tcopy(H5T_STD_I32LE), H5Tclose};
    case 5:
      return {H5Tcopy(H5T_STD_U8LE), H5Tclose};
    case 6:
      return {H5Tcreate(H5T_OPAQUE, 1 + random.below(8)), H5Tclose};
    case 7: {
      Handle swapped(H5Tcopy(old), H5Tclose);
      H5Tset_order(swapped.get(), H5T_ORDER_BE);
      return swapped;
    }
    default:
      return {H5Tcopy(old), H5Tclose};
  }
}

void change_extents(std::vector<hsize_t>& extents, Random& random) {
  switch (random.below(6)) {
    case 0:
      std::reverse(extents.begin(), extents.end());
      break;
    case 1:
      extents.push_back(1);
      break;
    case 2:
      if (!extents.empty()) {
        extents[random.below(extents.size())] += random.below(3);
      }
      break;
    case 3:
      if (!extents.empty()) {
        extents[random.below(extents.size())] = static_cast<hsize_t>(random.integer());
      }
      break;
    default:
      break;
  }
}

void add_filters(hid_t properties, Random& random) {
  if (random.chance(3)) {
    H5Pset_shuffle(properties);
  }
  if (random.chance(2)) {
    H5Pset_deflate(properties, 6);
  }
  if (random.chance(3)) {
    H5Pset_fletcher32(properties);
  }
  if (random.chance(8)) {
    H5Pset_nbit(properties);
  }
  if (random.chance(8)) {
    H5Pset_scaleoffset(properties, H5Z_SO_INT, 0);
  }
}

Handle any_storage(const std::vector<hsize_t>& extents, Random& random) {
  Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  switch (random.below(6)) {
    case 0:
    case 1: {
      std::vector<hsize_t> chunk(extents);
      for (hsize_t& extent : chunk) {
        extent = 1 + random.below(std::clamp<hsize_t>(extent, 1, 64));
      }
      if (!chunk.empty()) {
        H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
        add_filters(properties.get(), random);
      }
      break;
    }
    case 2:
      H5Pset_layout(properties.get(), H5D_COMPACT);
      break;
    case 3:
      H5Pset_external(properties.get(), "absent.bin", 0, H5F_UNLIMITED);
      break;
    default:
      break;
  }
  return properties;
}

Handle any_space(const std::vector<hsize_t>& extents, Random& random) {
  if (random.chance(10)) {
    return {H5Screate(random.chance(2) ? H5S_NULL : H5S_SCALAR), H5Sclose};
  }
  return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose};
}

void store_anew(hid_t file, const std::string& path, hid_t old, Random& random) {
  const Handle old_type(H5Dget_type(old), H5Tclose);
  Contents contents = contents_of(old, old_type.get());
  change_extents(contents.extents, random);
  const Handle type = any_type(old_type.get(), random);
  const Handle space = any_space(contents.extents, random);
  const Handle properties = any_storage(contents.extents, random);
  H5Ldelete(file, path.c_str(), H5P_DEFAULT);
  const Handle created(
      H5Dcreate2(file, path.c_str(), type.get(), space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Dclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (!created || count < 0 || count > kMostElements || random.chance(8)) {
    return;
  }
  contents.bytes.resize(static_cast<std::size_t>(count) * std::max(H5Tget_size(type.get()), std::size_t{1}));
  H5Dwrite(created.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, contents.bytes.data());
}

}  // namespace

void edit_dataset(hid_t file, const std::string& path, Random& random) {
  const Handle dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset) {
    return;
  }
  if (random.chance(2)) {
    change_values(dataset.get(), random);
  } else {
    store_anew(file, path, dataset.get(), random);
  }
}

}  // namespace attndiff::fuzzing
