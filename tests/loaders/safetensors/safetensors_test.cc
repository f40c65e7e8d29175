#include "loaders/safetensors/safetensors.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/safetensors/json_text.h"
#include "tests/loaders/safetensors/safetensors_file.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<SafetensorsTensor>> Parse(const std::string& bytes) {
  return ParseSafetensors(MappedFile::FromStatic(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                          bytes.size()),
      "x.safetensors"));
}

std::string MessageOf(const std::string& bytes) {
  const auto parsed = Parse(bytes);
  EXPECT_FALSE(parsed.ok());
  return std::string(parsed.status().message());
}

// An entry of a header.
std::string Entry(const std::string& name, const std::string& type,
                  const std::string& shape, const std::string& place) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", type, "\",\"shape\":[",
                      shape, "],\"data_offsets\":[", place, "]}");
}

TEST(Safetensors, GivesTensorsInTheOrderOfTheirBytes) {
  const std::string bytes = SafetensorsBytes({{"z", "F32", {2, 1}, "abcdefgh"},
                                              {"empty", "F16", {0, 3}, ""},
                                              {"a", "BF16", {3}, "123456"},
                                              {"one", "U8", {}, "x"}});
  const auto tensors = Parse(bytes);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 4u);
  EXPECT_EQ((*tensors)[0].name, "z");
  EXPECT_EQ((*tensors)[0].Describe(), "F32 [2, 1]");
  EXPECT_EQ((*tensors)[1].name, "empty");
  EXPECT_EQ((*tensors)[2].name, "a");
  EXPECT_THAT((*tensors)[2].shape, ElementsAre(3));
  EXPECT_EQ((*tensors)[2].data[0], '1');
  EXPECT_EQ((*tensors)[3].elements(), 1);
}

TEST(Safetensors, RefusesWhatIsCutOffOrTooLarge) {
  const std::string good = SafetensorsBytes({{"a", "F32", {2}, "abcdefgh"}});
  for (size_t size : {size_t{0}, size_t{7}, size_t{20}, good.size() - 1}) {
    EXPECT_THAT(MessageOf(good.substr(0, size)), HasSubstr("x.safetensors"))
        << size;
  }
  EXPECT_THAT(MessageOf(good + "!"), HasSubstr("belong to no tensor"));
  std::string long_header = good;
  long_header[7] = '\x7f';
  EXPECT_THAT(MessageOf(long_header), HasSubstr("its header has"));
  EXPECT_THAT(MessageOf(WithHeader("[1]", "")), HasSubstr("no object"));
  EXPECT_THAT(MessageOf(WithHeader("{", "")), HasSubstr("no JSON"));
  EXPECT_THAT(
      MessageOf(WithHeader(
          "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}", "")),
      HasSubstr("within each other"));
}

TEST(Safetensors, RefusesEntriesThatDoNotFitTheirBytes) {
  const std::string data = "abcdefgh";
  const auto message = [&](const std::string& entries) {
    return MessageOf(WithHeader("{" + entries + "}", data));
  };
  EXPECT_THAT(message(Entry("a", "F32", "3", "0,8")), HasSubstr("takes 12"));
  EXPECT_THAT(message(Entry("a", "F31", "2", "0,8")), HasSubstr("not known"));
  EXPECT_THAT(message(Entry("a", "F32", "2", "0,9")), HasSubstr("beyond"));
  EXPECT_THAT(message(Entry("a", "F32", "2", "8,0")), HasSubstr("beyond"));
  EXPECT_THAT(message(Entry("a", "F32", "2", "-8,0")), HasSubstr("beyond"));
  EXPECT_THAT(message(Entry("a", "F32", "2", "0.0,8")), HasSubstr("beyond"));
  EXPECT_THAT(message(Entry("a", "F32", "-2", "0,8")), HasSubstr("dimension"));
  EXPECT_THAT(
      message(Entry("a", "F32", "4294967296,4294967296,4294967296", "0,8")),
      HasSubstr("dimension"));
  EXPECT_THAT(message(Entry("a", "F32", "9223372036854775807,2", "0,8")),
              HasSubstr("dimension"));
  EXPECT_THAT(message(Entry("a", "U8", "1,1,1,1,1,1,1,1,8", "0,8")),
              HasSubstr("dimensions"));
  EXPECT_THAT(message("\"a\":{\"dtype\":\"F32\"}"), HasSubstr("no dtype"));
  EXPECT_THAT(message("\"a\":3"), HasSubstr("no object"));
}

TEST(Safetensors, RefusesOverlapsHolesAndNamesTwice) {
  const auto message = [&](const std::string& entries) {
    return MessageOf(WithHeader("{" + entries + "}", "abcdefgh"));
  };
  EXPECT_THAT(message(Entry("a", "F32", "2", "0,8") + "," +
                      Entry("b", "F32", "1", "4,8")),
              HasSubstr("overlap"));
  EXPECT_THAT(message(Entry("a", "F32", "1", "4,8")), HasSubstr("hole"));
  EXPECT_THAT(message(Entry("a", "F32", "1", "0,4") + "," +
                      Entry("a", "F32", "1", "4,8")),
              HasSubstr("twice"));
}

class SafetensorsFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  void WritePart(const std::string& name, const std::string& tensor) {
    WriteFileBytes(folder_ + "/" + name,
                   SafetensorsBytes({{tensor, "F32", {1}, "abcd"}}));
  }
  void WriteIndex(const nlohmann::json& map) {
    WriteFileBytes(folder_ + "/model.safetensors.index.json",
                   nlohmann::json({{"weight_map", map}}).dump());
  }
  std::string Message() const {
    const auto opened = SafetensorsFolder::Open(folder_);
    EXPECT_FALSE(opened.ok());
    return std::string(opened.status().message());
  }

  std::string folder_;
};

TEST_F(SafetensorsFolderTest, ReadsOneFileOrThePartsOfAnIndex) {
  EXPECT_THAT(Message(), HasSubstr("neither"));
  WritePart("model.safetensors", "alone");
  auto opened = SafetensorsFolder::Open(folder_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->tensors().size(), 1u);
  WritePart("model-1.safetensors", "a");
  WritePart("model-2.safetensors", "b");
  WriteIndex({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}});
  opened = SafetensorsFolder::Open(folder_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ(opened->tensors().size(), 2u);
  EXPECT_EQ(opened->tensors()[1].name, "b");
  EXPECT_EQ(opened->paths().size(), 3u);
}

TEST_F(SafetensorsFolderTest, RefusesAnIndexThatLies) {
  WritePart("model-1.safetensors", "a");
  WritePart("model-2.safetensors", "b");
  WriteIndex({{"a", "model-1.safetensors"}});
  auto opened = SafetensorsFolder::Open(folder_);
  EXPECT_TRUE(opened.ok()) << opened.status();
  WriteIndex({{"a", "model-2.safetensors"}});
  EXPECT_THAT(Message(), HasSubstr("is not in"));
  WriteIndex({{"a", "model-1.safetensors"}, {"c", "model-1.safetensors"}});
  EXPECT_THAT(Message(), HasSubstr("is not in"));
  WriteIndex({{"a", "model-3.safetensors"}});
  EXPECT_THAT(Message(), HasSubstr("model-3"));
  for (const char* name : {"../model.safetensors", "/etc/passwd",
                           ".hidden.safetensors", "x.bin", ""}) {
    WriteIndex({{"a", name}});
    EXPECT_THAT(Message(), HasSubstr("no name of a .safetensors file")) << name;
  }
  WriteFileBytes(folder_ + "/model.safetensors.index.json", "{}");
  EXPECT_THAT(Message(), HasSubstr("weight_map"));
  WritePart("model-2.safetensors", "a");
  WriteIndex({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}});
  EXPECT_THAT(Message(), HasSubstr("another part has it too"));
}

TEST(JsonText, IsBoundedBeforeItIsParsed) {
  JsonLimits limits;
  limits.bytes = 100;
  limits.values = 10;
  limits.depth = 3;
  const auto parse = [&](const std::string& text) {
    return ParseJsonObject(text, "x", limits);
  };
  EXPECT_TRUE(parse(R"({"a": [1, 2, {"b": 3}]})").ok());
  EXPECT_TRUE(parse(R"({"a": "[[[[[[,,,,,,,,,,,,\"[[[["})").ok());
  EXPECT_THAT(std::string(parse(R"({"a": [[[1]]]})").status().message()),
              HasSubstr("within each other"));
  EXPECT_THAT(
      std::string(parse(R"({"a": [1,2,3,4,5,6,7,8,9,10]})").status().message()),
      HasSubstr("values"));
  EXPECT_THAT(std::string(parse(std::string(101, ' ')).status().message()),
              HasSubstr("bytes"));
  EXPECT_FALSE(parse("{\"a\": \"\xff\"}").ok());
  EXPECT_FALSE(parse(R"({"a": 1} {})").ok());
}

}  // namespace
}  // namespace weft
