// Models split into several files.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/loaders/gguf_test_util.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace weft
