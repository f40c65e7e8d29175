#include "serve/answer_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/text/test_vocabulary.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

class AnswerWriterTest : public testing::Test {
 protected:
  AnswerWriterTest() : tokenizer_(*Tokenizer::Create(SpmVocabulary())) {}

  AnswerWriter Make(AnswerKind kind, const char* form = nullptr,
                    std::vector<std::string> echoes = {}) {
    const json tools =
        json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
    std::vector<answer::AnswerReader> readers;
    for (const char* id : {"a", "b"}) {
      answer::ReaderOptions options;
      options.tools = tools;
      options.id = id;
      readers.emplace_back(
          form == nullptr ? answer::PlainForms() : answer::NamedForms(form),
          std::move(options));
    }
    return AnswerWriter(kind, {"id-1", 5, "model", {}}, fields_,
                        tokenizer_.get(), std::move(readers),
                        std::move(echoes));
  }

  std::unique_ptr<const Tokenizer> tokenizer_;
  GenerationFields fields_;
};

Event Text(const std::string& text, std::vector<GeneratedToken> tokens = {}) {
  Event event;
  event.text = text;
  event.tokens = std::move(tokens);
  return event;
}

Event End(FinishReason reason, const std::string& text = "") {
  Event event = Text(text);
  event.finished = true;
  event.reason = reason;
  return event;
}

std::vector<json> Parse(const std::string& stream) {
  std::vector<json> events;
  for (absl::string_view event :
       absl::StrSplit(stream, "\n\n", absl::SkipEmpty())) {
    EXPECT_TRUE(absl::ConsumePrefix(&event, "data: "));
    if (event != "[DONE]") events.push_back(json::parse(std::string(event)));
  }
  return events;
}

std::string WholeText(AnswerWriter& writer, const Usage& usage) {
  std::string text;
  JsonStream answer([&](absl::string_view piece) {
    absl::StrAppend(&text, piece);
    return true;
  });
  writer.Whole(usage, &answer);
  EXPECT_TRUE(answer.Finish());
  return text;
}

json Whole(AnswerWriter& writer) { return json::parse(WholeText(writer, {})); }

Usage SomeUsage() {
  Usage usage;
  usage.prompt_tokens = 7;
  usage.completion_tokens = 3;
  usage.cached_tokens = 2;
  usage.drafted_tokens = 5;
  usage.accepted_tokens = 1;
  return usage;
}

TEST_F(AnswerWriterTest, AWholeChat) {
  AnswerWriter writer = Make(AnswerKind::kChat);
  writer.Add(1, Text("two"));
  writer.Add(0, Text("o"));
  writer.Add(0, End(FinishReason::kLength, "ne"));
  writer.Add(1, End(FinishReason::kEndOfText));
  EXPECT_EQ(
      WholeText(writer, SomeUsage()),
      R"({"id":"id-1","object":"chat.completion","created":5,"model":"model",)"
      R"("choices":[{"index":0,"message":{"role":"assistant","content":"one",)"
      R"("refusal":null},"logprobs":null,"finish_reason":"length"},)"
      R"({"index":1,"message":{"role":"assistant","content":"two",)"
      R"("refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,)"
      R"("prompt_tokens_details":{"cached_tokens":2},)"
      R"("completion_tokens_details":{"accepted_prediction_tokens":1,)"
      R"("rejected_prediction_tokens":4}}})");
}

TEST_F(AnswerWriterTest, AStreamedChat) {
  fields_.stream_usage = true;
  AnswerWriter writer = Make(AnswerKind::kChat);
  std::string stream = writer.Part(0, Text(""));
  stream += writer.Part(0, Text("one"));
  stream += writer.Part(0, End(FinishReason::kContext, "!"));
  const std::vector<json> events = Parse(stream + writer.End(SomeUsage()));
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["choices"][0]["delta"].dump(),
            R"({"role":"assistant","content":""})");
  EXPECT_EQ(events[1]["choices"][0]["delta"].dump(), R"({"content":"one"})");
  EXPECT_EQ(events[2]["choices"][0]["delta"].dump(), R"({"content":"!"})");
  EXPECT_EQ(events[3]["choices"][0]["delta"].dump(), "{}");
  EXPECT_EQ(events[3]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], nullptr);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(events[i]["usage"].is_null()) << i;
  EXPECT_TRUE(events[0].contains("usage"));
  EXPECT_EQ(events[4]["choices"], json::array());
  EXPECT_EQ(events[4]["usage"]["total_tokens"], 10);
}

TEST_F(AnswerWriterTest, CallsOfTools) {
  const std::string call =
      R"(<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)";
  AnswerWriter whole = Make(AnswerKind::kChat, "hermes");
  whole.Add(0, Text(call));
  whole.Add(0, End(FinishReason::kEndOfText));
  const json choice = Whole(whole)["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], nullptr);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"].dump(),
            R"({"name":"f","arguments":"{\"x\": 1}"})");
  EXPECT_EQ(choice["message"]["tool_calls"][0]["type"], "function");
  EXPECT_FALSE(choice["message"]["tool_calls"][0].contains("index"));

  AnswerWriter stream = Make(AnswerKind::kChat, "hermes");
  std::string parts = stream.Part(0, Text("so <tool"));
  parts += stream.Part(0, Text(call.substr(5)));
  parts += stream.Part(0, End(FinishReason::kEndOfText));
  const std::vector<json> events = Parse(parts);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[1]["choices"][0]["delta"]["content"], "so");
  const json begin = events[2]["choices"][0]["delta"]["tool_calls"][0];
  EXPECT_EQ(begin["index"], 0);
  EXPECT_EQ(begin["id"].get<std::string>().size(), 9u);
  EXPECT_EQ(begin["function"].dump(), R"({"name":"f","arguments":""})");
  EXPECT_EQ(events[3]["choices"][0]["delta"].dump(),
            R"({"tool_calls":[{"index":0,"function":)"
            R"({"arguments":"{\"x\": 1}"}}]})");
  EXPECT_EQ(events[4]["choices"][0]["finish_reason"], "tool_calls");
}

// A stream cannot take back what it told, but says that nothing is called, and
// the text as a whole answer has it.
TEST_F(AnswerWriterTest, ABrokenCallIsNoCall) {
  const std::string call =
      R"(Text <tool_call>{"name": "f", "arguments": {"x": "C:\dir"}} and so)";
  AnswerWriter whole = Make(AnswerKind::kChat, "hermes");
  whole.Add(0, Text(call));
  whole.Add(0, End(FinishReason::kEndOfText));
  const json choice = Whole(whole)["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["message"]["content"], call);
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  for (const FinishReason reason :
       {FinishReason::kEndOfText, FinishReason::kStopString}) {
    AnswerWriter stream = Make(AnswerKind::kChat, "hermes");
    std::string parts;
    for (const char c : call) parts += stream.Part(0, Text(std::string(1, c)));
    parts += stream.Part(0, End(reason));
    std::string content;
    for (const json& event : Parse(parts)) {
      content += event["choices"][0]["delta"].value("content", "");
    }
    EXPECT_EQ(content, call);
    EXPECT_EQ(Parse(parts).back()["choices"][0]["finish_reason"], "stop");
  }
}

TEST_F(AnswerWriterTest, Reasoning) {
  AnswerWriter whole = Make(AnswerKind::kChat, "hermes");
  whole.Add(0, Text("<think>\nHm.\n</think>\n\nYes."));
  whole.Add(0, End(FinishReason::kEndOfText));
  const json message = Whole(whole)["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "Hm.");
  EXPECT_EQ(message["content"], "Yes.");

  AnswerWriter stream = Make(AnswerKind::kChat, "hermes");
  std::string parts = stream.Part(0, Text("<think>Hm"));
  parts += stream.Part(0, Text(".</think>Yes."));
  parts += stream.Part(0, End(FinishReason::kEndOfText));
  const std::vector<json> events = Parse(parts);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[1]["choices"][0]["delta"].dump(),
            R"({"reasoning_content":"Hm"})");
  EXPECT_EQ(events[2]["choices"][0]["delta"].dump(),
            R"({"reasoning_content":"."})");
  EXPECT_EQ(events[3]["choices"][0]["delta"].dump(), R"({"content":"Yes."})");
}

TEST_F(AnswerWriterTest, ACallThatWasCutIsAPartialCall) {
  AnswerWriter writer = Make(AnswerKind::kChat, "hermes");
  writer.Add(0, Text(R"(<tool_call>{"name": "f", "arguments": {"x": 1)"));
  writer.Add(0, End(FinishReason::kLength));
  const json choice = Whole(writer)["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["message"]["content"], nullptr);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"],
            "{\"x\": 1");
}

TEST_F(AnswerWriterTest, LogprobsOfCompletions) {
  fields_.top_logprobs = 2;
  AnswerWriter writer = Make(AnswerKind::kCompletion);
  const double none = -std::numeric_limits<double>::infinity();
  // Half of an e with acute, the other half, then a word.
  writer.Add(0, Text("", {{3 + 0xc3, -1, {{3 + 0xc3, -1}, {4, none}}}}));
  writer.Add(0, Text("\xc3\xa9", {{3 + 0xa9, -2, {}}}));
  writer.Add(0, Text("llo", {{290, -3, {{290, -3}, {290, -4}, {2, -5}}}}));
  writer.Add(0, End(FinishReason::kStopString));
  const json choice = Whole(writer)["choices"][0];
  EXPECT_EQ(choice["text"], "\xc3\xa9llo");
  EXPECT_EQ(choice["logprobs"].dump(),
            R"({"tokens":["bytes:\\xc3","bytes:\\xa9","llo"],)"
            R"("token_logprobs":[-1.0,-2.0,-3.0],)"
            R"("top_logprobs":[{"bytes:\\xc3":-1.0,"\u0001":-9999.0},)"
            R"({"bytes:\\xa9":-2.0},)"
            R"({"llo":-3.0,"</s>":-5.0}],"text_offset":[0,1,1]})");
}

TEST_F(AnswerWriterTest, WholeLogprobsAreThoseOfTheStream) {
  fields_.top_logprobs = 1;
  for (const AnswerKind kind : {AnswerKind::kChat, AnswerKind::kCompletion}) {
    AnswerWriter whole = Make(kind), stream = Make(kind);
    json streamed;
    for (int i = 0; i < 3; ++i) {
      const Event event = Text("llo", {{290, -1.5 - i, {{290, -1.5 - i}}}});
      whole.Add(0, event);
      const json logprobs =
          Parse(stream.Part(0, event)).back()["choices"][0]["logprobs"];
      if (i == 0) {
        streamed = logprobs;
        continue;
      }
      for (const auto& list : logprobs.items()) {
        for (const json& element : list.value()) {
          streamed[list.key()].push_back(element);
        }
      }
    }
    EXPECT_EQ(Whole(whole)["choices"][0]["logprobs"], streamed);
    EXPECT_GT(whole.bytes(), 50);
    EXPECT_LT(whole.bytes(), static_cast<int64_t>(WholeText(whole, {}).size()));
  }
}

TEST_F(AnswerWriterTest, OffsetsBeginBehindTheEcho) {
  fields_.top_logprobs = 0;
  AnswerWriter writer =
      Make(AnswerKind::kCompletion, nullptr, {"\xc3\xa9\xc3\xa9"});
  writer.Add(0, Text("llo", {{290, -3, {}}}));
  const json choice = Whole(writer)["choices"][0];
  EXPECT_EQ(choice["text"], "\xc3\xa9\xc3\xa9llo");
  EXPECT_EQ(choice["logprobs"]["text_offset"][0], 2);
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][0], json::object());
}

TEST_F(AnswerWriterTest, AnEchoHasTheLogprobsOfItsPrompt) {
  fields_.top_logprobs = 1;
  fields_.prompt_logprobs = 1;
  Event first = Text("");
  first.prompt = {{1, 0, {}}, {290, -1, {{290, -1}}}};
  Event second = Text("llo", {{290, -3, {{290, -3}}}});
  second.prompt = {{290, -2, {{2, -1}}}};
  AnswerWriter whole = Make(AnswerKind::kCompletion, nullptr, {"llollo"});
  whole.Add(0, first);
  whole.Add(0, second);
  whole.Add(0, End(FinishReason::kLength));
  const json choice = Whole(whole)["choices"][0];
  EXPECT_EQ(choice["text"], "llollollo");
  EXPECT_EQ(choice["logprobs"].dump(),
            R"({"tokens":["<s>","llo","llo","llo"],)"
            R"("token_logprobs":[null,-1.0,-2.0,-3.0],)"
            R"("top_logprobs":[null,{"llo":-1.0},{"</s>":-1.0,"llo":-2.0},)"
            R"({"llo":-3.0}],"text_offset":[0,0,3,6]})");
  // Without an echo they stand by themselves.
  fields_.top_logprobs.reset();
  AnswerWriter apart = Make(AnswerKind::kCompletion);
  apart.Add(0, first);
  apart.Add(0, End(FinishReason::kLength));
  EXPECT_EQ(
      Whole(apart)["choices"][0]["prompt_logprobs"].dump(),
      R"([null,{"290":{"logprob":-1.0,"rank":1,"decoded_token":"llo"}}])");
}

TEST_F(AnswerWriterTest, LogprobsOfChats) {
  fields_.top_logprobs = 1;
  AnswerWriter writer = Make(AnswerKind::kChat);
  const std::vector<json> events =
      Parse(writer.Part(0, Text("llo", {{290, -0.5, {{290, -0.5}, {2, -5}}}})));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1]["choices"][0]["logprobs"]["content"].dump(),
            R"([{"token":"llo","logprob":-0.5,"bytes":[108,108,111],)"
            R"("top_logprobs":[{"token":"llo","logprob":-0.5,)"
            R"("bytes":[108,108,111]}]}])");
}

TEST_F(AnswerWriterTest, AStreamedCompletionBeginsWithItsEcho) {
  AnswerWriter writer = Make(AnswerKind::kCompletion, nullptr, {"say: ", ""});
  std::string stream = writer.Part(0, Text("a"));
  stream += writer.Part(1, Text(""));
  stream += writer.Part(0, End(FinishReason::kLength, "b"));
  const std::vector<json> events = Parse(stream + writer.End(SomeUsage()));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["choices"][0]["text"], "say: a");
  EXPECT_EQ(events[1]["choices"][0]["text"], "b");
  EXPECT_EQ(events[1]["choices"][0]["finish_reason"], "length");
}

}  // namespace
}  // namespace weft
