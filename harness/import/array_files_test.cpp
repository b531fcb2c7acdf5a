#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <functional>
#include <stdexcept>
#include <tuple>

#include "harness/fixture/testing.h"
#include "harness/import/array_source.h"
#include "harness/import/import_test_files.h"
#include "harness/import/npy.h"
#include "reference/contract/error.h"

namespace attndiff {

void import_testing::write_zip(const std::string& path,
                               const std::vector<std::pair<std::string, std::string>>& entries) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  if (archive == nullptr) {
    throw std::runtime_error("no archive");
  }
  for (const auto& [name, bytes] : entries) {
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0);
  }
  if (zip_close(archive) != 0) {
    throw std::runtime_error(zip_strerror(archive));
  }
}

namespace {

using fixture_testing::read_bytes;
using fixture_testing::TemporaryFolder;
using fixture_testing::write_bytes;
using import_testing::bytes_of;
using import_testing::npy;
using import_testing::safetensors;
using import_testing::safetensors_around;
using import_testing::write_zip;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What an action that must fail says.
std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    return e.what();
  }
  return "nothing was refused";
}

class ArrayFiles : public ::testing::Test {
 protected:
  /// Opens a file of these bytes and, where named, reads an array of it.
  std::string refused(const std::string& file, const std::string& bytes, const std::string& array = {}) {
    write_bytes(folder_.file(file), bytes);
    return refusal([&] {
      const auto source = open_arrays(folder_.file(file));
      if (!array.empty()) {
        std::ignore = source->read(array);
      }
    });
  }

  TemporaryFolder folder_;
};

TEST_F(ArrayFiles, SafetensorsHoldWhatWasWritten) {
  write_bytes(folder_.file("x.safetensors"), safetensors({{"b", "F32", {2, 1}, bytes_of<float>({1.5F, -2})},
                                                          {"a", "I64", {3}, bytes_of<std::int64_t>({-1, 0, 7})},
                                                          {"none", "F32", {0, 4}, ""},
                                                          {"scalar", "U8", {}, "\x05"},
                                                          {"odd", "F4", {2}, "\x01"}}));
  const auto source = open_arrays(folder_.file("x.safetensors"));
  EXPECT_THAT(source->names(), ElementsAre("a", "b", "none", "odd", "scalar"));
  const Tensor b = tensor_of(source->read("b"), DType::bf16, "f", "b");
  EXPECT_EQ(b.shape(), (Shape{2, 1}));
  EXPECT_EQ(to_float(b.as<Bf16>()[1]), -2);
  EXPECT_THAT(tensor_of(source->read("a"), DType::i32, "f", "a").as<std::int32_t>(), ElementsAre(-1, 0, 7));
  EXPECT_EQ(source->read("none").bytes.size(), 0U);
  EXPECT_EQ(tensor_of(source->read("scalar"), DType::u8, "f", "s").count(), 1);
  EXPECT_THAT(refusal([&] { std::ignore = source->read("odd"); }), HasSubstr("F4"));
  EXPECT_THAT(refusal([&] { std::ignore = source->read("absent"); }), HasSubstr("absent: missing"));
}

TEST_F(ArrayFiles, DamagedSafetensorsAreRefusedByName) {
  const std::string good = safetensors({{"a", "F32", {2}, bytes_of<float>({1, 2})}});
  EXPECT_THAT(refused("x.safetensors", ""), HasSubstr("too short"));
  EXPECT_THAT(refused("x.safetensors", good.substr(0, 20)), HasSubstr("header: longer than the file"));
  EXPECT_THAT(refused("x.safetensors", good.substr(0, good.size() - 1)), HasSubstr("a: its offsets lie outside"));
  EXPECT_THAT(refused("x.safetensors", good + "x"), HasSubstr("bytes that belong to no array"));
  EXPECT_THAT(refused("x.safetensors", bytes_of<std::uint64_t>({~std::uint64_t{0}}) + "{}"), HasSubstr("longer than"));
  EXPECT_THAT(refused("x.safetensors", safetensors_around("[1]", "")), HasSubstr("expected an object"));
  EXPECT_THAT(refused("x.safetensors", safetensors_around("{\"a\":", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(refused("x.safetensors", safetensors_around(std::string(100'000, '['), "")), HasSubstr("not valid JSON"));
}

TEST_F(ArrayFiles, HeadersThatContradictThemselvesAreRefused) {
  const auto header = [&](const std::string& text, const std::string& data) {
    return refused("x.safetensors", safetensors_around(text, data));
  };
  const std::string data(16, '\0');
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_THAT(header("{" + a + R"(,"b":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}})", data),
              HasSubstr("b: overlaps another array"));
  EXPECT_THAT(header("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", data),
              HasSubstr("b: leaves a hole"));
  EXPECT_THAT(header("{" + a + "," + a + "}", data), HasSubstr("a key comes twice"));
  EXPECT_THAT(header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", data), HasSubstr("outside the file"));
  EXPECT_THAT(header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})", data),
              AllOf(HasSubstr("12 bytes"), HasSubstr("16 bytes")));
  EXPECT_THAT(header(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]}})", data),
              HasSubstr("a size that fits 64 bits"));
  EXPECT_THAT(header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,16]}})", data),
              HasSubstr("shape is not valid"));
  EXPECT_THAT(header(R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,16]}})", data),
              HasSubstr("shape is not valid"));
  EXPECT_THAT(header(R"({"a":{"dtype":4,"shape":[4],"data_offsets":[0,16]}})", data), HasSubstr("dtype is not valid"));
  EXPECT_THAT(header(R"({"a":{"shape":[4],"data_offsets":[0,16]}})", data), HasSubstr("key 'dtype' is missing"));
  EXPECT_THAT(header(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0]}})", data),
              HasSubstr("data_offsets is not valid"));
  EXPECT_THAT(header(R"({"a":7})", data), HasSubstr("key 'data_offsets' is missing"));
}

TEST_F(ArrayFiles, AnIndexFindsItsShards) {
  write_bytes(folder_.file("one.safetensors"), safetensors({{"a", "U8", {1}, "\x01"}}));
  const auto index = [&](const std::string& map) {
    write_bytes(folder_.file("i.json"), R"({"metadata":{},"weight_map":)" + map + "}");
    return folder_.file("i.json");
  };
  const auto source = open_arrays(index(R"({"a":"one.safetensors","b":"two.safetensors","c":"one.safetensors"})"));
  EXPECT_EQ(source->read("a").bytes.size(), 1U);
  EXPECT_THAT(refusal([&] { std::ignore = source->read("b"); }),
              AllOf(HasSubstr("two.safetensors"), HasSubstr("cannot be opened")));
  EXPECT_THAT(refusal([&] { std::ignore = source->read("c"); }), HasSubstr("one.safetensors: c: missing"));
  EXPECT_THAT(refusal([&] { std::ignore = source->read("d"); }), HasSubstr("i.json: d: missing"));
  for (const char* outside : {"../one.safetensors", "/etc/passwd", "..", "", "sub/one.safetensors"}) {
    const std::string path = index(std::string(R"({"a":")") + outside + "\"}");
    EXPECT_THAT(refusal([&] { std::ignore = open_arrays(path); }), HasSubstr("not a file beside the index")) << outside;
  }
  EXPECT_THAT(refused("i.json", "{}"), HasSubstr("weight_map"));
}

TEST_F(ArrayFiles, PicklesAreNeverRead) {
  for (const char* name : {"x.pt", "x.pth", "x.bin", "x.pkl"}) {
    EXPECT_THAT(refused(name, "anything"), HasSubstr("pickled files")) << name;
  }
  write_zip(folder_.file("x.npz"),
            {{"o.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "\x80\x04N.")}});
  EXPECT_THAT(refusal([&] { std::ignore = open_arrays(folder_.file("x.npz"))->read("o"); }),
              HasSubstr("is a pickle and is never loaded"));
}

TEST_F(ArrayFiles, NpzHoldsWhatWasWritten) {
  write_zip(
      folder_.file("x.npz"),
      {{"steps.0.x.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", bytes_of<float>({3, 4}))},
       {"b.npy", npy("{'descr': '|V2', 'fortran_order': True, 'shape': (2,)}", bytes_of<std::uint16_t>({0x3f80, 0}))},
       {"t.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\x01")}});
  const auto source = open_arrays(folder_.file("x.npz"));
  EXPECT_THAT(source->names(), ElementsAre("b", "steps.0.x", "t"));
  EXPECT_THAT(tensor_of(source->read("steps.0.x"), DType::f32, "f", "x").as<float>(), ElementsAre(3, 4));
  EXPECT_EQ(to_float(tensor_of(source->read("b"), DType::bf16, "f", "b").as<Bf16>()[0]), 1);
  EXPECT_EQ(tensor_of(source->read("t"), DType::u8, "f", "t").as<std::uint8_t>()[0], 1);
}

TEST_F(ArrayFiles, DamagedNpzFilesAreRefusedByName) {
  EXPECT_THAT(refused("x.npz", "no zip at all"), HasSubstr("not a zip archive"));
  const auto entry = [&](const std::string& bytes) {
    write_zip(folder_.file("x.npz"), {{"a.npy", bytes}});
    return refusal([&] { std::ignore = open_arrays(folder_.file("x.npz"))->read("a"); });
  };
  EXPECT_THAT(entry("something else"), HasSubstr("a: not an npy array"));
  EXPECT_THAT(entry(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "1234")), HasSubstr("12 bytes"));
  EXPECT_THAT(
      entry(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (281474976710656, 281474976710656)}", "1234")),
      HasSubstr("fits 64 bits"));
  EXPECT_THAT(entry(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "1234")),
              HasSubstr("little endian"));
  EXPECT_THAT(entry(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}", "1234")),
              HasSubstr("column by column"));
  EXPECT_THAT(entry(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234")),
              HasSubstr("structured types"));
  EXPECT_THAT(entry(npy("{'descr': '<f4', 'shape': (1,)}", "1234")), HasSubstr("fortran_order"));
  EXPECT_THAT(entry(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "1234")), HasSubstr("extents"));
  EXPECT_THAT(entry(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + exit()", "1234")),
              HasSubstr("nothing else"));
  EXPECT_THAT(entry(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "1234").substr(0, 40)),
              HasSubstr("cut off"));
  write_zip(folder_.file("x.npz"), {{"readme.txt", "text"}});
  EXPECT_THAT(refusal([&] { std::ignore = open_arrays(folder_.file("x.npz")); }),
              HasSubstr("names that end with .npy"));
}

TEST_F(ArrayFiles, AChangedByteInAnNpzFileIsFound) {
  std::string values(4096, '\0');
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<char>(i * i * 31 % 251);
  }
  write_zip(folder_.file("x.npz"),
            {{"a.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4096,)}", values)}});
  const std::string good = read_bytes(folder_.file("x.npz"));
  std::string bad = good;
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 0x10);
  EXPECT_NE(refused("bad.npz", bad, "a"), "nothing was refused");
  EXPECT_EQ(refused("good.npz", good, "a"), "nothing was refused");
  EXPECT_NE(refused("cut.npz", good.substr(0, good.size() - 30), "a"), "nothing was refused");
}

TEST_F(ArrayFiles, NothingIsRoundedOnTheWay) {
  const auto array = [](ElementType type, const char* name, std::vector<std::int64_t> shape, const std::string& bytes) {
    Array made{.info = {.type = type, .type_name = name, .shape = std::move(shape)}, .bytes = {}};
    for (const char c : bytes) {
      made.bytes.push_back(static_cast<std::byte>(c));
    }
    return made;
  };
  const Array third = array(ElementType::f32, "F32", {1}, bytes_of<float>({1.0F / 3}));
  EXPECT_THAT(refusal([&] { std::ignore = tensor_of(third, DType::bf16, "f", "third"); }),
              HasSubstr("third: a float32 value that bf16"));
  const Array large = array(ElementType::i64, "I64", {1}, bytes_of<std::int64_t>({std::int64_t{1} << 31}));
  EXPECT_THAT(refusal([&] { std::ignore = tensor_of(large, DType::i32, "f", "large"); }),
              HasSubstr("large: a value beyond int32"));
  EXPECT_THAT(refusal([&] { std::ignore = tensor_of(large, DType::bf16, "f", "large"); }),
              HasSubstr("wrong element type"));
  const Array deep = array(ElementType::u8, "U8", {1, 1, 1, 1, 1}, "x");
  EXPECT_THAT(refusal([&] { std::ignore = tensor_of(deep, DType::u8, "f", "deep"); }),
              HasSubstr("too many dimensions"));
  const Array nan = array(ElementType::f32, "F32", {1}, bytes_of<std::uint32_t>({0x7fc00000}));
  EXPECT_EQ(tensor_of(nan, DType::bf16, "f", "nan").as<Bf16>()[0].bits, 0x7fc0);
}

}  // namespace
}  // namespace attndiff
