#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"
#include "serve/json_stream.h"

namespace {

// Allocations that succeed before all others fail; -1: none fails.
int64_t allocations_left = -1;

}  // namespace

// Not inlined: the compiler would take free() for a mistake.
[[gnu::noinline]] void* operator new(size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr char kSmall[] =
    R"({"a": [1, -2, 3.5, "text", null, true, {}], "b": {"c": [[], [{"d":
       "\u00e9"}]]}, "e": "a string that is too long to be kept within"})";

json RandomValue(std::mt19937* random, int depth) {
  switch ((*random)() % (depth > 4 ? 5 : 7)) {
    case 0:
      return nullptr;
    case 1:
      return static_cast<int64_t>((*random)()) - 2000000000;
    case 2:
      return (*random)() / 7.0;
    case 3:
      return std::string((*random)() % 40, "a\"\\\n"[(*random)() % 4]);
    case 4:
      return (*random)() % 2 == 0;
    case 5: {
      json list = json::array();
      for (unsigned i = (*random)() % 5; i > 0; --i) {
        list.push_back(RandomValue(random, depth + 1));
      }
      return list;
    }
    default: {
      json object = json::object();
      for (unsigned i = (*random)() % 40; i > 0; --i) {
        object[absl::StrCat("k", (*random)() % 50)] =
            RandomValue(random, depth + 1);
      }
      return object;
    }
  }
}

TEST(ParseJsonTest, ValuesAreNlohmanns) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const std::string text = RandomValue(&random, 0).dump();
    const auto value = ParseJson(text);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(value->dump(), json::parse(text).dump());
  }
  EXPECT_EQ(ParseJson(kSmall)->dump(), json::parse(kSmall).dump());
}

TEST(ParseJsonTest, OfAFieldThatIsThereTwiceTheLastCounts) {
  for (const int fields : {2, 15, 16, 17, 40}) {
    std::string text = "{\"twice\": 1";
    for (int i = 2; i < fields; ++i) absl::StrAppend(&text, ",\"", i, "\":[]");
    absl::StrAppend(&text, ",\"2\":5,\"twice\":{\"x\":2}}");
    const auto value = ParseJson(text);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(value->dump(), json::parse(text).dump());
  }
}

TEST(ParseJsonTest, MemoryIsBounded) {
  const auto error = [](const std::string& text) {
    return std::string(ParseJson(text).status().message());
  };
  const auto list = [](int count, const std::string& element) {
    std::string text = "[0";
    for (int i = 0; i < count; ++i) absl::StrAppend(&text, ",", element);
    return text + "]";
  };
  // As many token ids as the longest contexts hold.
  EXPECT_EQ(error(list(1500000, "7")), "");
  EXPECT_TRUE(absl::StrContains(error(list(2500000, "7")), "bytes"));
  EXPECT_TRUE(absl::StrContains(error(list(900000, "[]")), "bytes"));
  EXPECT_TRUE(absl::StrContains(error(list(900000, "{}")), "bytes"));
  EXPECT_TRUE(absl::StrContains(error(list(900000, "\"\"")), "bytes"));
  EXPECT_TRUE(absl::StrContains(error(list(500000, "{\"\":0}")), "bytes"));
  // Fields are found without looking along all others: this would be a
  // billion comparisons.
  std::string wide = "{\"\":0";
  for (int i = 0; i < 4000; ++i) absl::StrAppend(&wide, ",\"", i, "\":0");
  wide += "}";
  EXPECT_EQ(error(list(140, wide)), "");
  EXPECT_TRUE(absl::StrContains(error(list(180, wide)), "bytes"));
}

// Wherever memory ends, it is an exception, and what was there goes.
TEST(ParseJsonTest, NoMemoryIsNoReasonToAbort) {
  bool parsed = false;
  for (int64_t count = 0; !parsed && count < 1000; ++count) {
    allocations_left = count;
    try {
      const auto value = ParseJson(kSmall);
      parsed = value.ok();
      const json copy = *value;
    } catch (const std::bad_alloc&) {
      parsed = false;
    }
    allocations_left = -1;
  }
  EXPECT_TRUE(parsed);
  json deep = nullptr;
  for (int i = 0; i < 100000; ++i) {
    json outer = json::array();
    outer.push_back(std::move(deep));
    deep = std::move(outer);
  }
  auto value = std::make_unique<json>(*ParseJson(kSmall));
  allocations_left = 0;
  value.reset();
  allocations_left = -1;
}

TEST(JsonStreamTest, PiecesAreTheWhole) {
  std::string text, all;
  for (int i = 0; i < 30000; ++i)
    absl::StrAppend(&text, "\xc3\xa9\"\xf0\x9f\x98\x80");
  text += "\xff";
  size_t pieces = 0;
  JsonStream stream([&](absl::string_view piece) {
    ++pieces;
    absl::StrAppend(&all, piece);
    return true;
  });
  stream.Open('{');
  stream.Key("a");
  stream.Open('[');
  stream.Text(text);
  stream.Value({{"x", 1}});
  stream.Raw("2,3");
  stream.Open('[');
  stream.Close();
  stream.Close();
  stream.Key("b");
  stream.Value(nullptr);
  stream.Close();
  EXPECT_TRUE(stream.Finish());
  EXPECT_GT(pieces, 5u);
  EXPECT_EQ(all, JsonText({{"a", {text, {{"x", 1}}, 2, 3, json::array()}},
                           {"b", nullptr}}));
}

TEST(JsonStreamTest, EndsWhereNobodyReads) {
  size_t pieces = 0;
  JsonStream stream([&](absl::string_view) { return ++pieces < 3; });
  stream.Open('[');
  while (!stream.broken()) stream.Text("some text");
  stream.Close();
  EXPECT_FALSE(stream.Finish());
  EXPECT_EQ(pieces, 3u);
}

// Where models read them: what is written back is what came.
TEST(JsonParserTest, NumbersThatModelsReadKeepTheirSpelling) {
  const std::string text =
      R"({"messages":[{"input":{"p":1.10,"n":123456789012345678901234567890}}],)"
      R"("tools":[{"parameters":{"maximum":1e2}}]})";
  const auto parsed = ParseJson(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(JsonText(*parsed), text);
  EXPECT_EQ(PlainNumbers(*parsed)["tools"][0]["parameters"]["maximum"], 100);
  // Everywhere else they are numbers.
  const auto other = ParseJson(R"({"temperature": 1.10, "tools": []})");
  EXPECT_EQ((*other)["temperature"], 1.1);
}

TEST(JsonParserTest, HalfASurrogatePairIsTheReplacementCharacter) {
  const auto parsed = ParseJson(
      R"({"a": "\ud800", "b": "\uD83D\uDE00", "c": "\\ud800", "\udc00": 1})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ((*parsed)["a"], "\uFFFD");
  EXPECT_EQ((*parsed)["b"], "\U0001F600");
  EXPECT_EQ((*parsed)["c"], "\\ud800");
  EXPECT_EQ((*parsed)["\uFFFD"], 1);
}

}  // namespace
}  // namespace weft
