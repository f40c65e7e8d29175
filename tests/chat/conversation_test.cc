// What is sent, what is dropped, what is saved.
#include "chat/conversation.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace weft::chat {
namespace {

using Json = nlohmann::ordered_json;

Conversation ThreeTurns() {
  Conversation conversation;
  conversation.SetSystem("Be brief.");
  for (const char* n : {"1", "2", "3"}) {
    conversation.Ask(std::string("question ") + n);
    conversation.Answer(std::string("answer ") + n);
  }
  conversation.Ask("question 4");
  return conversation;
}

// Ten tokens a message.
absl::StatusOr<int64_t> Tokens(const Json& messages) {
  return static_cast<int64_t>(messages.size()) * 10;
}

TEST(Conversation, MessagesAreInOrder) {
  Conversation conversation;
  conversation.Ask("hello");
  EXPECT_EQ(conversation.Messages().dump(),
            R"([{"role":"user","content":"hello"}])");
  conversation.SetSystem("Be brief.");
  conversation.Answer("hi");
  EXPECT_EQ(conversation.Messages().dump(),
            R"([{"role":"system","content":"Be brief."},)"
            R"({"role":"user","content":"hello"},)"
            R"({"role":"assistant","content":"hi"}])");
}

TEST(Conversation, ReasoningGoesWithItsAnswer) {
  Conversation conversation;
  conversation.Ask("hello");
  conversation.Answer("hi", "greet");
  EXPECT_EQ(conversation.Messages()[1].dump(),
            R"({"role":"assistant","content":"hi",)"
            R"("reasoning_content":"greet"})");
  conversation.Reopen();
  conversation.Answer("hello");
  EXPECT_FALSE(conversation.Messages()[1].contains("reasoning_content"));
}

TEST(Conversation, WhatFitsIsSentWhole) {
  Conversation conversation = ThreeTurns();
  EXPECT_EQ(*conversation.Trim(80, Tokens), 80);
  EXPECT_EQ(conversation.dropped(), 0u);
}

TEST(Conversation, TheOldestTurnsGoUntilAQuarterIsFree) {
  Conversation conversation = ThreeTurns();
  EXPECT_EQ(*conversation.Trim(79, Tokens), 60);
  EXPECT_EQ(conversation.dropped(), 1u);
  const Json messages = conversation.Messages();
  EXPECT_EQ(messages[0]["content"], "Be brief.");
  EXPECT_EQ(messages[1]["content"], "question 2");
  // For good.
  EXPECT_EQ(*conversation.Trim(1000, Tokens), 60);
}

TEST(Conversation, TheSystemMessageAndTheNewestMessageStay) {
  Conversation conversation = ThreeTurns();
  EXPECT_EQ(*conversation.Trim(1, Tokens), 20);
  EXPECT_EQ(conversation.dropped(), 3u);
  EXPECT_EQ(conversation.Messages()[1]["content"], "question 4");
}

TEST(Conversation, AnErrorOfCountingIsGivenOn) {
  Conversation conversation = ThreeTurns();
  const auto fails = [](const Json&) -> absl::StatusOr<int64_t> {
    return absl::InvalidArgumentError("chat template: line 1: no");
  };
  EXPECT_EQ(conversation.Trim(10, fails).status().message(),
            "chat template: line 1: no");
}

TEST(Conversation, AnAnswerCanBeGivenAgain) {
  Conversation conversation;
  conversation.Reopen();
  EXPECT_TRUE(conversation.Messages().empty());
  conversation.Ask("hello");
  conversation.Answer("hi");
  conversation.Reopen();
  EXPECT_EQ(conversation.Messages().size(), 1u);
  conversation.Answer("good day");
  EXPECT_EQ(conversation.Messages()[1]["content"], "good day");
}

TEST(Conversation, AMessageCanBeWithdrawn) {
  Conversation conversation = ThreeTurns();
  conversation.Withdraw();
  EXPECT_EQ(conversation.turns().size(), 3u);
  EXPECT_EQ(conversation.Messages().back()["content"], "answer 3");
}

TEST(Conversation, ResetKeepsTheSystemMessage) {
  Conversation conversation = ThreeTurns();
  ASSERT_TRUE(conversation.Trim(1, Tokens).ok());
  conversation.Reset();
  EXPECT_EQ(conversation.dropped(), 0u);
  EXPECT_EQ(conversation.Messages().size(), 1u);
}

TEST(Conversation, WhatWasDroppedIsSaved) {
  Conversation conversation = ThreeTurns();
  ASSERT_TRUE(conversation.Trim(1, Tokens).ok());
  const Json json = Json::parse(conversation.ToJson());
  EXPECT_EQ(json["messages"].size(), 8u);
  EXPECT_EQ(json["messages"][1]["content"], "question 1");
}

TEST(Conversation, WhatWasSavedCanBeLoaded) {
  Conversation conversation;
  conversation.SetSystem("be brief");
  conversation.Ask("one");
  conversation.Answer("1", "thought");
  conversation.Ask("two");
  const auto loaded = Conversation::FromJson(conversation.ToJson());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->ToJson(), conversation.ToJson());
  EXPECT_EQ(loaded->turns().size(), 2u);
  EXPECT_FALSE(loaded->turns()[1].answered);
  EXPECT_TRUE(Conversation::FromJson(R"({"messages": []})").ok());
}

TEST(Conversation, WhatIsNoConversationIsRefused) {
  for (const auto& [text, why] :
       std::vector<std::pair<std::string, std::string>>{
           {"", "no JSON object"},
           {"[]", "no JSON object"},
           {"{}", "no JSON object"},
           {R"({"messages": {}})", "no JSON object"},
           {R"({"messages": [)", "no JSON object"},
           {std::string(1 << 20, '['), "no JSON object"},
           {R"({"messages": [17]})", "message 1 has no role"},
           {R"({"messages": [{"role": "user", "content": null}]})",
            "message 1 has no role"},
           {R"({"messages": [{"role": 1, "content": "x"}]})",
            "message 1 has no role"},
           {R"({"messages": [{"role": "assistant", "content": "x"}]})",
            "message 1 is out of place"},
           {R"({"messages": [{"role": "user", "content": "x"},
                {"role": "system", "content": "x"}]})",
            "message 2 is out of place"},
           {R"({"messages": [{"role": "tool", "content": "x"}]})",
            "role is 'tool'"}}) {
    const auto loaded = Conversation::FromJson(text);
    ASSERT_FALSE(loaded.ok()) << text.substr(0, 100);
    EXPECT_TRUE(absl::StrContains(loaded.status().message(), why))
        << loaded.status();
  }
}

TEST(Conversation, MarkdownHasATitlePerMessage) {
  Conversation conversation;
  conversation.SetSystem("Be brief.");
  conversation.Ask("hello");
  conversation.Answer("hi");
  EXPECT_EQ(conversation.ToMarkdown(),
            "# Conversation\n\n## System\n\nBe brief.\n\n## User\n\nhello\n\n"
            "## Assistant\n\nhi\n");
}

TEST(Conversation, BytesThatAreNoTextDoNotBreakTheJson) {
  Conversation conversation;
  conversation.Ask("\xff");
  EXPECT_EQ(Json::parse(conversation.ToJson())["messages"][0]["content"],
            "\uFFFD");
}

}  // namespace
}  // namespace weft::chat
