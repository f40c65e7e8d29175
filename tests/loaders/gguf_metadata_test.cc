// All metadata types, nested arrays, and typed access with its errors.
#include "loaders/gguf_metadata.h"

#include <limits>
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

}  // namespace
}  // namespace weft
