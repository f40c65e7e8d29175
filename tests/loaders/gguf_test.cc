// Reader and writer together: all metadata types, alignment, split files, and
// the errors of shapes, types and placement.
#include "loaders/gguf.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf_writer.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TempPath(const std::string& name) {
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-", name);
}

std::string ReadBytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

absl::StatusOr<GgufFile> WriteAndOpen(const GgufWriter& writer,
                                      const std::string& name) {
  const std::string path = TempPath(name);
  const absl::Status status = writer.WriteTo(path);
  if (!status.ok()) return status;
  auto file = GgufFile::Open(path);
  unlink(path.c_str());
  return file;
}

std::string ErrorOf(const absl::Status& status) {
  return std::string(status.message());
}

std::vector<uint8_t> Bytes(size_t count, uint8_t first) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(first + i);
  return bytes;
}

// Replaces the only place where `from` stands.
std::string Replaced(std::string bytes, const std::string& from,
                     const std::string& to) {
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(bytes.find(from, at + 1), std::string::npos);
  return bytes.replace(at, from.size(), to);
}

template <typename T>
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}

TEST(GgufMetadata, EveryScalarTypeComesBack) {
  GgufWriter writer;
  writer.SetUint8("u8", 255);
  writer.SetInt8("i8", -128);
  writer.SetUint16("u16", 65535);
  writer.SetInt16("i16", -32768);
  writer.SetUint32("u32", 4294967295u);
  writer.SetInt32("i32", std::numeric_limits<int32_t>::min());
  writer.SetUint64("u64", std::numeric_limits<uint64_t>::max());
  writer.SetInt64("i64", std::numeric_limits<int64_t>::min());
  writer.SetFloat32("f32", 0.1f);
  writer.SetFloat64("f64", 0.1);
  writer.SetBool("yes", true);
  writer.SetBool("no", false);
  writer.SetString("string", absl::string_view("a\0b\n", 4));
  writer.SetString("empty", "");
  auto file = WriteAndOpen(writer, "scalars.gguf");
  ASSERT_TRUE(file.ok()) << file.status();

  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(*file->GetUint("u8"), 255u);
  EXPECT_EQ(*file->GetInt("i8"), -128);
  EXPECT_EQ(*file->GetUint("u16"), 65535u);
  EXPECT_EQ(*file->GetInt("i16"), -32768);
  EXPECT_EQ(*file->GetUint("u32"), 4294967295u);
  EXPECT_EQ(*file->GetInt("i32"), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(*file->GetUint("u64"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(*file->GetInt("i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*file->GetFloat("f32"), 0.1f);
  EXPECT_EQ(*file->GetFloat("f64"), 0.1);
  EXPECT_EQ(*file->GetFloat("i8"), -128.0);
  EXPECT_EQ(*file->GetBool("yes"), true);
  EXPECT_EQ(*file->GetBool("no"), false);
  EXPECT_EQ(*file->GetString("string"), std::string("a\0b\n", 4));
  EXPECT_EQ(*file->GetString("empty"), "");
  // Keys stand in the order they were set.
  ASSERT_EQ(file->metadata().size(), 14u);
  EXPECT_EQ(file->metadata().front().key, "u8");
  EXPECT_EQ(file->metadata().back().key, "empty");
}

TEST(GgufMetadata, MissingAndWronglyTypedKeysAreNamed) {
  GgufWriter writer;
  writer.SetInt32("negative", -1);
  writer.SetUint64("huge", std::numeric_limits<uint64_t>::max());
  writer.SetString("text", "7");
  writer.SetFloat32("float", 7);
  writer.SetBool("bool", true);
  writer.SetUint8s("bytes", {1, 2, 3});
  auto file = WriteAndOpen(writer, "typed.gguf");
  ASSERT_TRUE(file.ok()) << file.status();

  EXPECT_THAT(ErrorOf(file->GetUint("gone").status()),
              HasSubstr("key gone is not there, expected an integer"));
  EXPECT_THAT(ErrorOf(file->GetUint("negative").status()),
              HasSubstr("key negative is i32 -1, expected an integer of 0"));
  EXPECT_THAT(ErrorOf(file->GetInt("huge").status()),
              HasSubstr("key huge is u64 18446744073709551615"));
  EXPECT_THAT(ErrorOf(file->GetInt("text").status()),
              HasSubstr("key text is string '7', expected an integer"));
  EXPECT_THAT(ErrorOf(file->GetInt("float").status()),
              HasSubstr("key float is f32 7, expected an integer"));
  EXPECT_THAT(ErrorOf(file->GetInt("bool").status()),
              HasSubstr("key bool is bool true, expected an integer"));
  EXPECT_THAT(ErrorOf(file->GetString("bytes").status()),
              HasSubstr("key bytes is an array of 3 u8, expected a string"));
  EXPECT_THAT(ErrorOf(file->GetFloats("bytes").status()),
              HasSubstr("array of 3 u8 whose element 0 is u8 1, expected an "
                        "array of f32"));
  EXPECT_THAT(ErrorOf(file->GetInts("text").status()),
              HasSubstr("expected an array of integers"));
  EXPECT_THAT(ErrorOf(file->GetBool("negative").status()),
              HasSubstr("expected a bool"));

  EXPECT_EQ(*file->OptionalUint("gone"), std::nullopt);
  EXPECT_EQ(*file->OptionalStrings("gone"), std::nullopt);
  EXPECT_FALSE(file->OptionalUint("text").ok());
  EXPECT_FALSE(file->OptionalBool("bytes").ok());
}

TEST(GgufMetadata, EveryArrayTypeComesBack) {
  GgufWriter writer;
  writer.SetUint8s("u8", {0, 255});
  writer.SetInt8s("i8", {-128, 127});
  writer.SetUint16s("u16", {0, 65535});
  writer.SetInt16s("i16", {-32768, 32767});
  writer.SetUint32s("u32", {0, 4294967295u});
  writer.SetInt32s("i32", {-1, 1});
  writer.SetUint64s("u64", {0, 1});
  writer.SetInt64s("i64", {-1, std::numeric_limits<int64_t>::max()});
  writer.SetFloat32s("f32", {0.5f, -2});
  writer.SetFloat64s("f64", {0.5, 1e300});
  writer.SetBools("bool", {true, false});
  writer.SetStrings("string", {absl::string_view("a"), "", "c d"});
  writer.SetInt32s("none", {});
  auto file = WriteAndOpen(writer, "arrays.gguf");
  ASSERT_TRUE(file.ok()) << file.status();

  EXPECT_THAT(*file->GetInts("u8"), ElementsAre(0, 255));
  EXPECT_THAT(*file->GetInts("i8"), ElementsAre(-128, 127));
  EXPECT_THAT(*file->GetInts("u16"), ElementsAre(0, 65535));
  EXPECT_THAT(*file->GetInts("i16"), ElementsAre(-32768, 32767));
  EXPECT_THAT(*file->GetInts("u32"), ElementsAre(0, 4294967295));
  EXPECT_THAT(*file->GetInts("i32"), ElementsAre(-1, 1));
  EXPECT_THAT(*file->GetInts("u64"), ElementsAre(0, 1));
  EXPECT_THAT(*file->GetInts("i64"),
              ElementsAre(-1, std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(*file->GetFloats("f32"), ElementsAre(0.5f, -2.0f));
  // 1e300 is no float.
  EXPECT_THAT(ErrorOf(file->GetFloats("f64").status()), HasSubstr("element 1"));
  EXPECT_THAT(*file->GetStrings("string"), ElementsAre("a", "", "c d"));
  EXPECT_TRUE(file->GetInts("none")->empty());
  EXPECT_EQ(file->FindValue("bool")->Print(), "[true, false]");
  EXPECT_EQ(file->FindValue("string")->Print(2), "[\"a\", \"\", ... 3 in all]");
}

// `depth` arrays around one u8.
std::string NestedArray(int depth) {
  std::string encoded;
  for (int i = 1; i < depth; ++i) {
    encoded += Raw<uint32_t>(9) + Raw<uint64_t>(1);
  }
  return encoded + Raw<uint32_t>(0) + Raw<uint64_t>(1) + '\x2a';
}

absl::Span<const uint8_t> AsBytes(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()),
                             text.size());
}

TEST(GgufMetadata, ArraysMayBeNestedUpToALimit) {
  for (int depth = 1; depth <= 20; ++depth) {
    GgufWriter writer;
    const std::string encoded = NestedArray(depth);
    writer.SetEncoded("nested", GgufType::kArray, AsBytes(encoded));
    writer.SetUint32("after", 7);
    auto file = WriteAndOpen(writer, "nested.gguf");
    if (depth <= GgufValue::kMaxArrayDepth) {
      ASSERT_TRUE(file.ok()) << file.status();
      EXPECT_EQ(file->FindValue("nested")->Print(),
                std::string(depth, '[') + "42" + std::string(depth, ']'));
      EXPECT_EQ(*file->GetUint("after"), 7u);
      EXPECT_EQ(file->GetInts("nested").ok(), depth == 1);
    } else {
      EXPECT_THAT(ErrorOf(file.status()), HasSubstr("nested deeper than 8"));
      EXPECT_THAT(ErrorOf(file.status()), HasSubstr("'nested'"));
    }
  }
}

TEST(GgufMetadata, AHugeNestedCountCostsNothing) {
  GgufWriter writer;
  const std::string encoded = Raw<uint32_t>(9) + Raw<uint64_t>(1) +
                              Raw<uint32_t>(8) +
                              Raw<uint64_t>(uint64_t{1} << 62);
  writer.SetEncoded("big", GgufType::kArray, AsBytes(encoded));
  EXPECT_THAT(ErrorOf(WriteAndOpen(writer, "big.gguf").status()),
              HasSubstr("4611686018427387904 elements of string"));
}

TEST(GgufMetadata, UnknownTypesAreRefused) {
  GgufWriter writer;
  writer.SetEncoded("odd", static_cast<GgufType>(13), {});
  EXPECT_THAT(ErrorOf(WriteAndOpen(writer, "odd.gguf").status()),
              HasSubstr("unknown type number 13"));
  GgufWriter array;
  const std::string encoded = Raw<uint32_t>(99) + Raw<uint64_t>(0);
  array.SetEncoded("odd", GgufType::kArray, AsBytes(encoded));
  EXPECT_THAT(ErrorOf(WriteAndOpen(array, "odd.gguf").status()),
              HasSubstr("unknown type number 99"));
}

TEST(GgufMetadata, ABoolOfTwoIsNoBool) {
  GgufWriter writer;
  const std::string encoded(1, '\x02');
  writer.SetEncoded("flag", GgufType::kBool, AsBytes(encoded));
  auto file = WriteAndOpen(writer, "bool.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(ErrorOf(file->GetBool("flag").status()), HasSubstr("flag"));
}

TEST(GgufMetadata, AKeyTwiceIsRefused) {
  GgufWriter writer;
  writer.SetUint8("a.key", 1);
  writer.SetUint8("b.key", 1);
  const std::string path = TempPath("twice.gguf");
  ASSERT_TRUE(writer.WriteTo(path).ok());
  WriteBytes(path, Replaced(ReadBytes(path), "b.key", "a.key"));
  EXPECT_THAT(ErrorOf(GgufFile::Open(path).status()),
              HasSubstr("'a.key' is there twice"));
  unlink(path.c_str());
}

TEST(GgufWriter, SettingAgainReplacesInPlaceAndRemoveRemoves) {
  GgufWriter writer;
  writer.SetUint8("a", 1);
  writer.SetUint8("b", 2);
  writer.SetUint8("c", 3);
  writer.SetString("a", "new");
  writer.Remove("b");
  auto file = WriteAndOpen(writer, "again.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->metadata().size(), 2u);
  EXPECT_EQ(file->metadata()[0].key, "a");
  EXPECT_EQ(*file->GetString("a"), "new");
  EXPECT_EQ(file->metadata()[1].key, "c");
}

TEST(GgufTensors, EveryStoredTypeComesBackOnEveryAlignment) {
  for (uint32_t alignment : {0u, 8u, 64u, 4096u}) {
    GgufWriter writer;
    if (alignment != 0) writer.SetAlignment(alignment);
    std::vector<std::vector<uint8_t>> data;
    for (const DTypeInfo& info : AllDTypes()) {
      data.push_back(Bytes(3 * info.block_bytes, data.size()));
    }
    for (const DTypeInfo& info : AllDTypes()) {
      if (info.gguf_id < 0 || info.type == DType::kI32) continue;
      writer.AddTensor(info.name, info.type, {info.block_elements, 3},
                       data[static_cast<int>(info.type)]);
    }
    auto file = WriteAndOpen(writer, "tensors.gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->tensors().size(), 15u);
    for (const GgufTensor& tensor : file->tensors()) {
      const DTypeInfo& info = Info(tensor.type);
      EXPECT_EQ(tensor.name, info.name);
      EXPECT_THAT(tensor.dims, ElementsAre(info.block_elements, 3));
      EXPECT_EQ(tensor.elements(), 3 * info.block_elements);
      EXPECT_EQ(tensor.data,
                absl::MakeConstSpan(data[static_cast<int>(tensor.type)]));
      EXPECT_EQ(tensor.offset % (alignment == 0 ? 32 : alignment), 0u);
      EXPECT_EQ(file->FindTensor(tensor.name), &tensor);
    }
    EXPECT_EQ(file->FindTensor("none"), nullptr);
  }
}

TEST(GgufTensors, DataOutlivesTheFileObject) {
  GgufWriter writer;
  const std::vector<uint8_t> data = Bytes(4 * 8, 5);
  writer.AddTensor("w", DType::kF32, {8}, data);
  GgufTensor kept;
  {
    auto file = WriteAndOpen(writer, "kept.gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    GgufFile moved = *std::move(file);
    kept = *moved.FindTensor("w");
  }
  EXPECT_EQ(kept.data, absl::MakeConstSpan(data));
}

TEST(GgufTensors, OtherTypesAreNamedWithTheirTensor) {
  struct Case {
    uint32_t id;
    const char* name;
  };
  for (const Case& c :
       {Case{16, "IQ2_XXS"}, Case{24, "I8"}, Case{26, "I32"}, Case{28, "F64"},
        Case{34, "TQ1_0"}, Case{39, "MXFP4"}, Case{4, "Q4_2"},
        Case{4000000000, "number 4000000000"}}) {
    GgufWriter writer;
    const std::vector<uint8_t> data = Bytes(1024, 0);
    writer.AddTensor("marker", DType::kF32, {256}, data);
    const std::string path = TempPath("type.gguf");
    ASSERT_TRUE(writer.WriteTo(path).ok());
    const std::string head = "marker" + Raw<uint32_t>(1) + Raw<uint64_t>(256);
    WriteBytes(path, Replaced(ReadBytes(path), head + Raw<uint32_t>(0),
                              head + Raw(c.id)));
    const std::string error = ErrorOf(GgufFile::Open(path).status());
    EXPECT_THAT(error, HasSubstr("'marker'"));
    EXPECT_THAT(error, HasSubstr(absl::StrCat("type ", c.name, ",")));
    unlink(path.c_str());
  }
}

TEST(GgufTensors, OverlappingAndDoubledTensorsAreRefused) {
  GgufWriter writer;
  const std::vector<uint8_t> data = Bytes(256, 0);
  writer.AddTensor("aa", DType::kF32, {64}, data);
  writer.AddTensor("bb", DType::kF32, {64}, data);
  const std::string path = TempPath("overlap.gguf");
  ASSERT_TRUE(writer.WriteTo(path).ok());
  const std::string bytes = ReadBytes(path);

  const std::string head =
      "bb" + Raw<uint32_t>(1) + Raw<uint64_t>(64) + Raw<uint32_t>(0);
  WriteBytes(path, Replaced(bytes, head + Raw<uint64_t>(256),
                            head + Raw<uint64_t>(224)));
  EXPECT_THAT(
      ErrorOf(GgufFile::Open(path).status()),
      HasSubstr("'bb': " + path + ": its data overlaps that of tensor 'aa'"));

  WriteBytes(path,
             Replaced(bytes, "bb" + Raw<uint32_t>(1), "aa" + Raw<uint32_t>(1)));
  EXPECT_THAT(ErrorOf(GgufFile::Open(path).status()),
              HasSubstr("'aa': " + path + ": the name is there twice"));

  WriteBytes(path, Replaced(bytes, "bb" + Raw<uint32_t>(1),
                            "\xff\xfe" + Raw<uint32_t>(1)));
  EXPECT_THAT(ErrorOf(GgufFile::Open(path).status()), HasSubstr("UTF-8"));

  // An offset so large that adding to it would wrap.
  WriteBytes(path, Replaced(bytes, head + Raw<uint64_t>(256),
                            head + Raw<uint64_t>(~uint64_t{31})));
  EXPECT_THAT(ErrorOf(GgufFile::Open(path).status()),
              HasSubstr("0 are present"));
  unlink(path.c_str());
}

TEST(GgufWriter, EqualCallsGiveEqualBytes) {
  std::string bytes[2];
  for (std::string& content : bytes) {
    GgufWriter writer;
    writer.SetString("general.architecture", "llama");
    writer.SetStrings("list", std::vector<std::string>{"x", "y"});
    const std::vector<uint8_t> data = Bytes(12, 1);
    writer.AddTensor("w", DType::kF32, {3}, data);
    const std::string path = TempPath("same.gguf");
    ASSERT_TRUE(writer.WriteTo(path).ok());
    content = ReadBytes(path);
    unlink(path.c_str());
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_EQ(bytes[0].size() % 32, 0u);
}

TEST(GgufWriter, ProducersWriteInPieces) {
  GgufWriter writer;
  const std::vector<uint8_t> data = Bytes(400, 9);
  writer.AddTensor("streamed", DType::kF32, {10, 10},
                   [&](const GgufWriter::Sink& sink) {
                     for (size_t at = 0; at < data.size(); at += 16) {
                       const absl::Status status =
                           sink(absl::MakeConstSpan(data).subspan(at, 16));
                       if (!status.ok()) return status;
                     }
                     return absl::OkStatus();
                   });
  writer.AddTensor("after", DType::kF32, {100}, data);
  auto file = WriteAndOpen(writer, "pieces.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->FindTensor("streamed")->data, absl::MakeConstSpan(data));
  EXPECT_EQ(file->FindTensor("after")->data, absl::MakeConstSpan(data));
}

TEST(GgufWriter, AFailureLeavesTheOldFileAndNoOther) {
  const std::string folder = TempPath("folder");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const std::string path = folder + "/model.gguf";
  WriteBytes(path, "old");
  const std::vector<uint8_t> data = Bytes(8, 0);

  GgufWriter too_short;
  too_short.AddTensor("w", DType::kF32, {3}, data);
  EXPECT_THAT(ErrorOf(too_short.WriteTo(path)),
              HasSubstr("'w': its data has 8 of the 12 bytes"));
  GgufWriter too_long;
  too_long.AddTensor("w", DType::kF32, {1}, data);
  EXPECT_THAT(ErrorOf(too_long.WriteTo(path)), HasSubstr("longer than the 4"));
  GgufWriter failing;
  failing.AddTensor("w", DType::kF32, {1}, [](const GgufWriter::Sink&) {
    return absl::DataLossError("producer says no");
  });
  EXPECT_THAT(ErrorOf(failing.WriteTo(path)), HasSubstr("producer says no"));

  EXPECT_EQ(ReadBytes(path), "old");
  unlink(path.c_str());
  // Fails when anything is left in it.
  EXPECT_EQ(rmdir(folder.c_str()), 0);
  EXPECT_THAT(ErrorOf(failing.WriteTo(path)), HasSubstr("No such file"));
}

TEST(GgufWriter, RefusesWhatNoReaderTakes) {
  const std::vector<uint8_t> data = Bytes(8, 0);
  const auto error_of = [&](DType type, std::vector<int64_t> dims) {
    GgufWriter writer;
    writer.AddTensor("w", type, std::move(dims), data);
    return ErrorOf(writer.WriteTo(TempPath("refused.gguf")));
  };
  EXPECT_THAT(error_of(DType::kQ8Rows, {32}), HasSubstr("no place"));
  EXPECT_THAT(error_of(DType::kF32, {}), HasSubstr("0 dimensions"));
  EXPECT_THAT(error_of(DType::kF32, {1, 1, 1, 1, 2}), HasSubstr("5"));
  EXPECT_THAT(error_of(DType::kF32, {0, 2}), HasSubstr("dimension is 0"));
  EXPECT_THAT(error_of(DType::kF32, {int64_t{1} << 30, int64_t{1} << 30}),
              HasSubstr("2^40"));
  EXPECT_THAT(error_of(DType::kQ4_K, {32, 8}), HasSubstr("256 of a Q4_K"));
  GgufWriter writer;
  writer.SetAlignment(24);
  EXPECT_THAT(ErrorOf(writer.WriteTo(TempPath("refused.gguf"))),
              HasSubstr("general.alignment is 24"));
}

// Writes a model of three parts with tensors t0, t1, t2 and returns its prefix.
class SplitModel {
 public:
  static constexpr int kParts = 3;

  explicit SplitModel(int announced_tensors = kParts)
      : prefix_(TempPath("split")) {
    for (int part = 0; part < kParts; ++part) {
      GgufWriter writer;
      if (part == 0) writer.SetString("general.architecture", "llama");
      writer.SetUint16("split.no", part);
      writer.SetUint16("split.count", kParts);
      writer.SetInt32("split.tensors.count", announced_tensors);
      const std::vector<uint8_t> data = Bytes(16, part);
      writer.AddTensor(absl::StrCat("t", part), DType::kF32, {4}, data);
      EXPECT_TRUE(writer.WriteTo(Path(part)).ok());
    }
  }
  ~SplitModel() {
    for (int part = 0; part < kParts; ++part) unlink(Path(part).c_str());
  }

  std::string Path(int part) const {
    return absl::StrFormat("%s-%05d-of-%05d.gguf", prefix_, part + 1, kParts);
  }

 private:
  const std::string prefix_;
};

TEST(GgufSplit, AnyPartOpensTheWholeModel) {
  const SplitModel model;
  for (int part = 0; part < SplitModel::kParts; ++part) {
    auto file = GgufFile::Open(model.Path(part));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(*file->GetString("general.architecture"), "llama");
    EXPECT_EQ(file->path(), model.Path(0));
    EXPECT_EQ(file->part_count(), 3);
    ASSERT_EQ(file->tensors().size(), 3u);
    int64_t bytes = 0;
    for (int i = 0; i < SplitModel::kParts; ++i) {
      const GgufTensor* tensor = file->FindTensor(absl::StrCat("t", i));
      ASSERT_NE(tensor, nullptr);
      EXPECT_EQ(tensor->data[0], i);
      EXPECT_EQ(tensor->file->path(), model.Path(i));
      bytes += tensor->file->bytes().size();
    }
    EXPECT_EQ(file->file_bytes(), bytes);
  }
}

TEST(GgufSplit, MissingSwappedAndForeignPartsAreNamed) {
  const SplitModel model;
  const std::string second = ReadBytes(model.Path(1));

  unlink(model.Path(1).c_str());
  std::string error = ErrorOf(GgufFile::Open(model.Path(0)).status());
  EXPECT_THAT(error, HasSubstr("part 2 of 3"));
  EXPECT_THAT(error, HasSubstr(model.Path(1)));

  WriteBytes(model.Path(1), ReadBytes(model.Path(2)));
  EXPECT_THAT(ErrorOf(GgufFile::Open(model.Path(0)).status()),
              HasSubstr(model.Path(1) + ": it says part 2"));

  WriteBytes(model.Path(1), Replaced(second, "t1", "t0"));
  EXPECT_THAT(ErrorOf(GgufFile::Open(model.Path(0)).status()),
              HasSubstr("'t0' is in an earlier part too"));

  WriteBytes(model.Path(1), second.substr(0, second.size() - 24));
  EXPECT_THAT(ErrorOf(GgufFile::Open(model.Path(0)).status()),
              HasSubstr("cut off: " + model.Path(1)));
}

TEST(GgufSplit, TheAnnouncedNumberOfTensorsMustBeThere) {
  const SplitModel model(4);
  EXPECT_THAT(ErrorOf(GgufFile::Open(model.Path(0)).status()),
              HasSubstr("split.tensors.count is 4, expected the 3"));
}

TEST(GgufSplit, APartUnderAnotherNameSaysWhatItNeeds) {
  const SplitModel model;
  const std::string renamed = TempPath("renamed.gguf");
  WriteBytes(renamed, ReadBytes(model.Path(0)));
  EXPECT_THAT(ErrorOf(GgufFile::Open(renamed).status()),
              HasSubstr("name it like model-00001-of-00003.gguf"));
  auto mapped = MappedFile::Open(renamed);
  ASSERT_TRUE(mapped.ok());
  EXPECT_THAT(ErrorOf(GgufFile::FromFile(*mapped).status()),
              HasSubstr("one of 3 parts"));
  unlink(renamed.c_str());
}

TEST(GgufWriter, CopyMetadataGivesTheSameValuesWithoutSplitKeys) {
  const SplitModel model;
  auto source = GgufFile::Open(model.Path(0));
  ASSERT_TRUE(source.ok()) << source.status();
  GgufWriter writer;
  writer.CopyMetadata(*source);
  for (const GgufTensor& tensor : source->tensors()) {
    writer.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
  }
  auto joined = WriteAndOpen(writer, "joined.gguf");
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->metadata().size(), 1u);
  EXPECT_EQ(joined->part_count(), 1);
  EXPECT_EQ(joined->FindTensor("t2")->data[0], 2);
}

TEST(GgufFile, PathsThatAreNoFilesAreErrors) {
  EXPECT_THAT(ErrorOf(GgufFile::Open("/does/not/exist.gguf").status()),
              HasSubstr("/does/not/exist.gguf"));
  EXPECT_THAT(ErrorOf(GgufFile::Open(::testing::TempDir()).status()),
              HasSubstr("directory"));
}

TEST(GgufFile, ALongTensorListIsReadInLinearTime) {
  // Quadratic look-ups would take minutes here.
  GgufWriter writer;
  const std::vector<uint8_t> data = Bytes(4, 0);
  for (int i = 0; i < 200000; ++i) {
    writer.AddTensor(absl::StrCat("tensor.", i), DType::kF32, {1}, data);
  }
  auto file = WriteAndOpen(writer, "long.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  for (int i = 0; i < 200000; ++i) {
    ASSERT_NE(file->FindTensor(absl::StrCat("tensor.", i)), nullptr);
  }
}

}  // namespace
}  // namespace weft
