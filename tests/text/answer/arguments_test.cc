#include "text/answer/arguments.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "text/answer/json_scanner.h"
#include "text/json_tree.h"

namespace weft::answer {
namespace {

std::string Parsed(const std::string& text) {
  const auto object = ParseArguments(text);
  return object.has_value() ? WriteJson(*object) : "none";
}

std::string Object(const std::string& text) {
  return WriteJson(ArgumentsObject(text));
}

TEST(Arguments, AnObjectIsWhatItIs) {
  EXPECT_EQ(Parsed("{}"), "{}");
  EXPECT_EQ(Parsed(" {\"a\" : [1, true,\nnull, {\"b\": \"x\\\"y\"}]} "),
            R"({"a":[1,true,null,{"b":"x\"y"}]})");
  EXPECT_EQ(Parsed(R"({"a": 1, "b": 2, "a": 3})"), R"({"a":3,"b":2})");
  for (const char* none : {"", " ", "[1]", "\"{}\"", "null", "{", "{}}",
                           "{\"a\": 1,}", "{\"a\": NaN}"}) {
    EXPECT_EQ(Parsed(none), "none") << none;
  }
}

TEST(Arguments, NumbersKeepTheirSpelling) {
  for (const char* number :
       {"1.10", "1e2", "1E400", "-0", "-0.0", "0.1", "7",
        "123456789012345678901234567890", "18446744073709551616",
        "-9223372036854775809", "1.0", "100000000000000000000.5"}) {
    const std::string text = absl::StrCat("{\"n\":[", number, "]}");
    EXPECT_EQ(Parsed(text), text);
    EXPECT_TRUE(PlainNumbers(*ParseArguments(text))["n"][0].is_number());
  }
  EXPECT_EQ(PlainNumbers(*ParseArguments(R"({"n": 1.10})"))["n"], 1.1);
}

TEST(Arguments, HalfASurrogatePairIsTheReplacementCharacter) {
  EXPECT_EQ(Parsed(R"({"u": "\ud800"})"), "{\"u\":\"\uFFFD\"}");
  EXPECT_EQ(Parsed(R"({"u": "\udc00\ud83d\ude00\ud83dx"})"),
            "{\"u\":\"\uFFFD\U0001F600\uFFFDx\"}");
  // An escaped backslash begins nothing.
  EXPECT_EQ(Parsed(R"({"u": "\\ud800"})"), R"({"u":"\\ud800"})");
}

TEST(Arguments, WhatBrokeOffIsClosed) {
  EXPECT_EQ(Object("{\"a\": \"Bern and "), R"({"a":"Bern and "})");
  EXPECT_EQ(Object("{"), "{}");
  EXPECT_EQ(Object(""), "{}");
  EXPECT_EQ(Object("{\"c"), "{}");
  EXPECT_EQ(Object("{\"c\": "), "{}");
  EXPECT_EQ(Object(R"({"a": 1, "b": tr)"), R"({"a":1})");
  EXPECT_EQ(Object(R"({"a": 1, "b": [1, {"c": 2.)"),
            R"({"a":1,"b":[1,{"c":2}]})");
  EXPECT_EQ(Object(R"({"a": "x\u00)"), R"({"a":"x"})");
  // Never within a character.
  EXPECT_EQ(Object("{\"a\": \"x\xc3\xa9\\"), "{\"a\":\"x\xc3\xa9\"}");
  // Where it is no JSON, what came before counts.
  EXPECT_EQ(Object(R"({"city": "C:\dir"})"), R"({"city":"C:"})");
  EXPECT_EQ(Object(R"({"a": 1,})"), R"({"a":1})");
  EXPECT_EQ(Object("hello"), R"({"arguments":"hello"})");
  EXPECT_EQ(Object("[1]"), R"({"arguments":"[1]"})");
}

// Wherever it is cut, it is an object, and what is in it was written.
TEST(Arguments, EveryBeginningIsAnObject) {
  const std::string text =
      R"({"a": "x\"\u00e9y", "b": [1.10, {"c": null}, []], "d": {"e": false}})";
  for (size_t size = 0; size <= text.size(); ++size) {
    const nlohmann::ordered_json object = ArgumentsObject(text.substr(0, size));
    ASSERT_TRUE(object.is_object()) << text.substr(0, size);
    EXPECT_FALSE(object.contains("arguments")) << text.substr(0, size);
  }
}

TEST(Arguments, BoundsHold) {
  const std::string deep =
      absl::StrCat("{\"a\":", std::string(90, '['), std::string(90, ']'), "}");
  EXPECT_EQ(Parsed(deep), "none");
  EXPECT_EQ(Object(deep),
            absl::StrCat("{\"arguments\":\"{\\\"a\\\":",
                         deep.substr(5, deep.size() - 6), "}\"}"));
  std::string many = "{";
  for (int i = 0; i < 100000; ++i) {
    absl::StrAppend(&many, i == 0 ? "" : ",", "\"", i, "\":0");
  }
  EXPECT_EQ(Parsed(many + "}"), "none");
}

}  // namespace
}  // namespace weft::answer
