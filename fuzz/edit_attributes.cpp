#include "fuzz/edit_attributes.h"

#include <array>
#include <cstring>
#include <vector>

#include "harness/fixture/hdf5.h"
#include "harness/fixture/layout.h"
#include "harness/fixture/types.h"

namespace attndiff::fuzzing {
namespace {

using h5::Handle;

constexpr std::array kNames{format::kFormat,     format::kVersion,   format::kNote,     format::kMustCover,
                            format::kFamily,     format::kIndexKeys, format::kLayerId,  format::kRatio,
                            format::kStartPos,   format::kTokens,    format::kSequence, format::kProcedural,
                            format::kDType,      format::kShape,     format::kSeed,     format::kScale,
                            format::kOffset,     format::kThen,      format::kQuant,    format::kCompressKvOwner,
                            format::kIndexKOwner};

constexpr std::array kTexts{"",
                            "attndiff-fixture",
                            "deepseek-v41",
                            "slot",
                            "own",
                            "bfloat16",
                            "float32",
                            "fp8",
                            "fp4_e8m0",
                            "fp4_e4m3",
                            "Q2_K",
                            "e4m3-e8m0-32",
                            "x",
                            "\xff\xfe",
                            "ring_wraps, threshold_ties",
                            "splitmix64-uniform"};

/// The name of an attribute that the object has, else one that fixtures use.
std::string name_on(hid_t object, Random& random) {
  H5O_info_t info{};
  if (H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0 || info.num_attrs == 0 || random.chance(4)) {
    return random.any(kNames);
  }
  std::array<char, 64> name{};
  H5Aget_name_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_NATIVE, random.below(info.num_attrs), name.data(), name.size(),
                     H5P_DEFAULT);
  return name.data();
}

void put(hid_t object, const std::string& name, hid_t type, const Handle& space, const void* value) {
  const Handle attribute(H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (attribute) {
    H5Awrite(attribute.get(), type, value);
  }
}

Handle scalar() { return {H5Screate(H5S_SCALAR), H5Sclose}; }

Handle list(hsize_t count) { return {H5Screate_simple(1, &count, nullptr), H5Sclose}; }

void put_integers(hid_t object, const std::string& name, Random& random) {
  const std::array types{H5T_STD_I64LE, H5T_STD_I64LE, H5T_STD_I32LE, H5T_STD_U8LE,  H5T_STD_U64LE,
                         H5T_STD_I64BE, H5T_STD_I16LE, H5T_STD_B8LE,  H5T_STD_U32BE, H5T_IEEE_F64LE};
  const hid_t type = random.any(types);
  const std::uint64_t count = random.chance(3) ? 1 + random.below(6) : 1;
  std::vector<std::int64_t> values(count);
  for (std::int64_t& value : values) {
    value = random.integer();
  }
  put(object, name, type, count == 1 && random.chance(2) ? scalar() : list(count), values.data());
}

void put_text(hid_t object, const std::string& name, Random& random) {
  const char* text = random.any(kTexts);
  if (random.chance(2)) {
    put(object, name, h5::string_type().get(), scalar(), static_cast<const void*>(&text));
    return;
  }
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  std::array<char, 64> bytes{};
  std::strncpy(bytes.data(), text, bytes.size() - 1);
  H5Tset_size(type.get(), 1 + random.below(bytes.size() - 1));
  H5Tset_strpad(type.get(), random.chance(2) ? H5T_STR_SPACEPAD : H5T_STR_NULLPAD);
  put(object, name, type.get(), scalar(), bytes.data());
}

void put_real(hid_t object, const std::string& name, Random& random) {
  const double value = random.real();
  const auto narrow = static_cast<float>(value);
  const bool wide = !random.chance(4);
  put(object, name, wide ? H5T_IEEE_F64LE : H5T_IEEE_F32LE, scalar(),
      wide ? static_cast<const void*>(&value) : static_cast<const void*>(&narrow));
}

/// Types that no attribute of a fixture has: an enumeration, a compound, an array, a reference, nothing at all.
void put_oddity(hid_t object, const std::string& name, Random& random) {
  const std::array<std::uint64_t, 8> zeros{};
  switch (random.below(5)) {
    case 0: {
      const Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
      const signed char no = 0;
      const signed char yes = 1;
      H5Tenum_insert(type.get(), "FALSE", &no);
      H5Tenum_insert(type.get(), "TRUE", &yes);
      put(object, name, type.get(), scalar(), random.chance(2) ? &yes : &no);
      break;
    }
    case 1: {
      const Handle type(H5Tcreate(H5T_COMPOUND, 8), H5Tclose);
      H5Tinsert(type.get(), "value", 0, H5T_STD_I64LE);
      put(object, name, type.get(), scalar(), zeros.data());
      break;
    }
    case 2: {
      const hsize_t extent = 3;
      const Handle type(H5Tarray_create2(H5T_STD_I64LE, 1, &extent), H5Tclose);
      put(object, name, type.get(), scalar(), zeros.data());
      break;
    }
    case 3:
      put(object, name, H5T_STD_REF_OBJ, scalar(), zeros.data());
      break;
    default:
      put(object, name, H5T_STD_I64LE, Handle(H5Screate(H5S_NULL), H5Sclose), zeros.data());
  }
}

}  // namespace

void edit_attribute(hid_t file, const std::string& object, Random& random) {
  const Handle owner(H5Oopen(file, object.c_str(), H5P_DEFAULT), H5Oclose);
  if (!owner) {
    return;
  }
  const std::string name = name_on(owner.get(), random);
  if (random.chance(8)) {
    H5Arename(owner.get(), name.c_str(), random.any(kNames));
    return;
  }
  if (H5Aexists(owner.get(), name.c_str()) > 0) {
    H5Adelete(owner.get(), name.c_str());
  }
  switch (random.below(8)) {
    case 0:
      break;
    case 1:
    case 2:
    case 3:
      put_integers(owner.get(), name, random);
      break;
    case 4:
    case 5:
      put_text(owner.get(), name, random);
      break;
    case 6:
      put_real(owner.get(), name, random);
      break;
    default:
      put_oddity(owner.get(), name, random);
  }
}

}  // namespace attndiff::fuzzing
