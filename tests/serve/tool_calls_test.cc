#include "serve/tool_calls.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using json = nlohmann::ordered_json;

json Tools() {
  return json::parse(
      R"([{"type": "function", "function": {"name": "weather"}},
          {"type": "function", "function": {"name": "time"}}])");
}

// Pushed whole and byte by byte: the same calls, and the same text in the end.
ParsedAnswer Read(ToolCustom custom, const std::string& text) {
  ToolCallReader whole(custom, Tools(), "x");
  std::string before = whole.Push(text);
  ParsedAnswer answer = whole.Finish();
  answer.content = before + answer.content;
  ToolCallReader bytes(custom, Tools(), "x");
  std::string pieces;
  for (const char c : text) pieces += bytes.Push(std::string(1, c));
  const ParsedAnswer rest = bytes.Finish();
  EXPECT_EQ(pieces + rest.content, answer.content);
  EXPECT_EQ(rest.calls.size(), answer.calls.size());
  return answer;
}

TEST(ToolCallsTest, TaggedCallsAfterText) {
  const ParsedAnswer answer = Read(
      ToolCustom::kTagged,
      "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": "
      "{\"city\": \"Bath\", \"a\": 1}}\n</tool_call>\n<tool_call>\n{\"name\": "
      "\"time\", \"arguments\": {}}\n</tool_call>");
  EXPECT_EQ(answer.content, "Let me see.\n");
  ASSERT_EQ(answer.calls.size(), 2u);
  EXPECT_EQ(answer.calls[0].name, "weather");
  EXPECT_EQ(answer.calls[0].arguments, R"({"city":"Bath","a":1})");
  EXPECT_EQ(answer.calls[1].name, "time");
  EXPECT_EQ(answer.calls[1].arguments, "{}");
  EXPECT_NE(answer.calls[0].id, answer.calls[1].id);
}

TEST(ToolCallsTest, TheEndOfTheTextClosesTheLastCall) {
  EXPECT_EQ(
      Read(ToolCustom::kTagged, "<tool_call>{\"name\": \"time\"}").calls.size(),
      1u);
}

TEST(ToolCallsTest, WhatIsNoCallStaysText) {
  for (const char* text :
       {"a < b", "<tool", "<tool_call>nothing</tool_call>",
        "<tool_call>{\"name\": \"unknown\"}</tool_call>",
        "<tool_call>{\"name\": \"time\", \"arguments\": 5}</tool_call>",
        "<tool_call>{\"name\": 5}</tool_call> more", "<<<tool_cal", ""}) {
    const ParsedAnswer answer = Read(ToolCustom::kTagged, text);
    EXPECT_EQ(answer.content, text);
    EXPECT_TRUE(answer.calls.empty());
  }
}

TEST(ToolCallsTest, TextAfterACallIsKept) {
  const ParsedAnswer answer =
      Read(ToolCustom::kTagged,
           "<tool_call>{\"name\": \"time\"}</tool_call> and then");
  EXPECT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.content, " and then");
}

TEST(ToolCallsTest, ABareCallIsTheWholeText) {
  const ParsedAnswer answer =
      Read(ToolCustom::kBare,
           "{\"name\": \"weather\", \"parameters\": {\"city\": \"Bath\"}}");
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls[0].arguments, R"({"city":"Bath"})");
  EXPECT_EQ(answer.content, "");
  for (const char* text :
       {"{\"name\": \"weather\"} and more", "Hello {\"name\": \"weather\"}",
        "{\"other\": 1}", "   ", "{"}) {
    const ParsedAnswer none = Read(ToolCustom::kBare, text);
    EXPECT_EQ(none.content, text);
    EXPECT_TRUE(none.calls.empty()) << text;
  }
}

TEST(ToolCallsTest, TextThatCanBeNoCallIsNotHeldBack) {
  ToolCallReader tagged(ToolCustom::kTagged, Tools(), "x");
  EXPECT_EQ(tagged.Push("one <"), "one ");
  EXPECT_EQ(tagged.Push("b> two"), "<b> two");
  ToolCallReader none(ToolCustom::kTagged, nullptr, "x");
  EXPECT_EQ(none.Push("<tool_call>"), "<tool_call>");
}

TEST(ToolCallsTest, TheCustomIsKnownFromTheTemplate) {
  EXPECT_EQ(ToolCustomOf("{{- '<tool_call>' }}"), ToolCustom::kTagged);
  EXPECT_EQ(ToolCustomOf(R"({{- '{"name": "' + name + '", ' }}
                            {{- '"parameters": ' }})"),
            ToolCustom::kBare);
  EXPECT_EQ(ToolCustomOf("{{ messages[0].content }}"), ToolCustom::kNone);
}

}  // namespace
}  // namespace weft
