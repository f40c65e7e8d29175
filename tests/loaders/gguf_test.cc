// Tensors of a file: types, alignment, placement and the errors of each.
#include "loaders/gguf.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/loaders/gguf_test_util.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GgufTensors, EveryStoredTypeComesBackOnEveryAlignment) {
  for (uint32_t alignment : {0u, 8u, 64u, 4096u}) {
    GgufWriter writer;
    if (alignment != 0) writer.SetAlignment(alignment);
    std::vector<std::vector<uint8_t>> data;
    for (const DTypeInfo& info : AllDTypes()) {
      data.push_back(Bytes(3 * info.block_bytes, data.size()));
    }
    size_t stored = 0;
    for (const DTypeInfo& info : AllDTypes()) {
      if (info.gguf_id < 0 || info.type == DType::kI32) continue;
      ++stored;
      writer.AddTensor(info.name, info.type, {info.block_elements, 3},
                       data[static_cast<int>(info.type)]);
    }
    auto file = WriteAndOpen(writer, "tensors.gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->tensors().size(), stored);
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
       {Case{31, "Q4_0_4_4"}, Case{24, "I8"}, Case{26, "I32"}, Case{28, "F64"},
        Case{36, "I2_S (of BitNet)"}, Case{4, "Q4_2"},
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
    // All that it could be.
    for (const DTypeInfo& row : AllDTypes()) {
      if (row.gguf_id < 0 || row.type == DType::kI32) continue;
      EXPECT_THAT(error, HasSubstr(absl::StrCat(" ", UpperName(row.type))));
    }
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
