// What the writer promises besides what a round trip shows (gguf_test.cc).
#include "loaders/gguf_writer.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/loaders/gguf_test_util.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

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

TEST(GgufWriter, HolesAreZerosOfTheRightSize) {
  const std::vector<uint8_t> data = Bytes(32, 5);
  GgufWriter writer;
  writer.AddHole("first", DType::kF32, {3});
  writer.AddTensor("middle", DType::kF32, {8}, data);
  writer.AddHole("last", DType::kF32, {1024, 1024});
  const std::string path = TempPath("holes.gguf");
  ASSERT_TRUE(writer.WriteTo(path).ok());
  const absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->FindTensor("middle")->data, absl::MakeConstSpan(data));
  const absl::Span<const uint8_t> last = file->FindTensor("last")->data;
  EXPECT_EQ(last.size(), size_t{4} << 20);
  EXPECT_EQ(std::count(last.begin(), last.end(), 0), int64_t{4} << 20);
  EXPECT_EQ(file->FindTensor("first")->data.size(), 12u);
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

}  // namespace
}  // namespace weft
