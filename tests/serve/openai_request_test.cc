#include "serve/openai_request.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

absl::StatusOr<CompletionRequest> Completion(const std::string& body) {
  return ParseCompletionRequest(body, {});
}

absl::StatusOr<ChatCompletionRequest> Chat(const std::string& rest) {
  return ParseChatCompletionRequest(
      absl::StrCat(R"({"messages": [{"role": "user", "content": "a"}])",
                   rest.empty() ? "" : ", ", rest, "}"),
      {});
}

// The error names the field in its text and in `param`.
void ExpectFieldError(const absl::Status& status, const std::string& param) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(ErrorParam(status), param) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), param)) << status;
}

TEST(CompletionRequestTest, DefaultsAreOpenAIs) {
  const auto request = Completion(R"({"prompt": "a"})");
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->prompts.size(), 1u);
  EXPECT_EQ(request->prompts[0].text, "a");
  const GenerationFields& fields = request->generation;
  EXPECT_EQ(fields.max_tokens, 16);
  EXPECT_EQ(fields.choices, 1);
  EXPECT_EQ(fields.sampling.temperature, 1);
  EXPECT_EQ(fields.sampling.top_p, 1);
  EXPECT_EQ(fields.sampling.top_k, 0);
  EXPECT_EQ(fields.sampling.repeat_penalty, 1);
  EXPECT_FALSE(fields.has_seed);
  EXPECT_FALSE(fields.stream);
  EXPECT_FALSE(fields.top_logprobs.has_value());
  EXPECT_TRUE(request->parse_special);
}

TEST(CompletionRequestTest, NullIsTheDefault) {
  const auto request = Completion(
      R"({"prompt": "a", "temperature": null, "stop": null, "n": null,
          "max_tokens": null, "logprobs": null, "logit_bias": null,
          "stream": null, "stream_options": null, "response_format": null,
          "suffix": null, "best_of": null, "grammar": null})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->generation.max_tokens, 16);
  EXPECT_EQ(request->generation.sampling.temperature, 1);
}

TEST(CompletionRequestTest, EveryFieldArrives) {
  const auto request = Completion(
      R"({"model": "any", "prompt": ["a", [1, 2]], "temperature": 0.5,
          "top_p": 0.25, "top_k": 7, "min_p": 0.125, "frequency_penalty": -1,
          "presence_penalty": 2, "repeat_penalty": 1.5, "repeat_window": -1,
          "seed": -3, "n": 2, "max_tokens": 5, "min_tokens": 2,
          "stop": ["x", "y"], "logit_bias": {"3": -100, "4": 1.5},
          "logprobs": 2, "echo": false, "ignore_eos": true,
          "cache_prompt": false, "parse_special": false, "stream": true,
          "stream_options": {"include_usage": true}, "user": 5})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->prompts[0].text, "a");
  EXPECT_FALSE(request->prompts[0].is_tokens);
  EXPECT_EQ(request->prompts[1].tokens, (std::vector<int32_t>{1, 2}));
  const GenerationFields& fields = request->generation;
  EXPECT_EQ(fields.sampling.temperature, 0.5f);
  EXPECT_EQ(fields.sampling.top_p, 0.25f);
  EXPECT_EQ(fields.sampling.top_k, 7);
  EXPECT_EQ(fields.sampling.min_p, 0.125f);
  EXPECT_EQ(fields.sampling.frequency_penalty, -1);
  EXPECT_EQ(fields.sampling.presence_penalty, 2);
  EXPECT_EQ(fields.sampling.repeat_penalty, 1.5f);
  EXPECT_EQ(fields.sampling.repeat_window, -1);
  EXPECT_TRUE(fields.has_seed);
  EXPECT_EQ(fields.sampling.seed, static_cast<uint64_t>(-3));
  EXPECT_EQ(fields.choices, 2);
  EXPECT_EQ(fields.max_tokens, 5);
  EXPECT_EQ(fields.min_tokens, 2);
  EXPECT_EQ(fields.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(fields.logit_bias,
            (std::vector<std::pair<int32_t, float>>{{3, -100}, {4, 1.5f}}));
  EXPECT_EQ(fields.top_logprobs, 2);
  EXPECT_TRUE(fields.ignore_eos);
  EXPECT_FALSE(fields.cache_prompt);
  EXPECT_TRUE(fields.stream);
  EXPECT_TRUE(fields.stream_usage);
  EXPECT_FALSE(request->parse_special);
}

TEST(CompletionRequestTest, PromptsMayBeTextsOrIds) {
  EXPECT_EQ(Completion(R"({"prompt": ["a", "b"]})")->prompts.size(), 2u);
  const auto ids = Completion(R"({"prompt": [5, 6]})");
  ASSERT_EQ(ids->prompts.size(), 1u);
  EXPECT_EQ(ids->prompts[0].tokens, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(Completion(R"({"prompt": [[5], [6, 7]]})")->prompts.size(), 2u);
}

TEST(CompletionRequestTest, LogprobsOfAnEchoAreThosePromptsHaveToo) {
  const auto echo =
      Completion(R"({"prompt": "a", "echo": true, "logprobs": 2})");
  ASSERT_TRUE(echo.ok()) << echo.status();
  EXPECT_EQ(echo->generation.prompt_logprobs, 2);
  EXPECT_FALSE(Completion(R"({"prompt": "a", "logprobs": 2})")
                   ->generation.prompt_logprobs.has_value());
  EXPECT_EQ(
      Completion(R"({"prompt": "a", "max_tokens": 0})")->generation.max_tokens,
      0);
  EXPECT_EQ(Completion(R"({"prompt": "a", "suffix": "b"})")->suffix, "b");
  EXPECT_FALSE(
      Completion(R"({"prompt": "a", "suffix": ""})")->suffix.has_value());
}

TEST(ChatRequestTest, ALastMessageOfTheAssistantGoesOn) {
  const auto chat = [](const std::string& last, const std::string& rest) {
    return ParseChatCompletionRequest(
        absl::StrCat(R"({"messages": [{"role": "user", "content": "q"}, )",
                     last, "]", rest, "}"),
        {});
  };
  const std::string assistant = R"({"role": "assistant", "content": "Sure, "})";
  const struct {
    std::string last, rest;
    bool continues, opens;
  } cases[] = {
      {assistant, "", true, false},
      {assistant, R"(, "continue_final_message": true)", true, false},
      {assistant, R"(, "continue_final_message": false)", false, true},
      {assistant, R"(, "add_generation_prompt": false)", false, false},
      {assistant, R"(, "add_generation_prompt": true)", false, true},
      {R"({"role": "user", "content": "b"})", "", false, true},
      {R"({"role": "user", "content": "b"})",
       R"(, "continue_final_message": true)", true, false},
      {R"({"role": "assistant", "content": ""})", "", false, true},
      {R"({"role": "assistant", "tool_calls": [{"id": "1", "function":
           {"name": "f", "arguments": "{}"}}]})",
       "", false, true},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.last + one.rest);
    const auto request = chat(one.last, one.rest);
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->continues_last, one.continues);
    EXPECT_EQ(request->add_generation_prompt, one.opens);
  }
  ExpectFieldError(chat(assistant, R"(, "continue_final_message": true,
                                      "add_generation_prompt": true)")
                       .status(),
                   "continue_final_message");
  ExpectFieldError(chat(R"({"role": "assistant", "content": ""})",
                        R"(, "continue_final_message": true)")
                       .status(),
                   "continue_final_message");
}

TEST(CompletionRequestTest, ErrorsNameTheField) {
  const struct {
    const char* fields;
    const char* param;
  } cases[] = {
      {R"("prompt": 5.5)", "prompt"},
      {R"("prompt": {})", "prompt"},
      {R"("prompt": [])", "prompt"},
      {R"("prompt": [1.5])", "prompt"},
      {R"("prompt": [1, "a"])", "prompt"},
      {R"("prompt": [-1])", "prompt"},
      {R"("prompt": [99999999999])", "prompt"},
      {R"("prompt": [[1], [true]])", "prompt"},
      {R"("prompt": ["a", {}])", "prompt"},
      {R"("prompt": null)", "prompt"},
      {R"("prompt": "a", "max_tokens": "ten")", "max_tokens"},
      {R"("prompt": "a", "max_tokens": 1.0)", "max_tokens"},
      {R"("prompt": "a", "max_tokens": -2)", "max_tokens"},
      {R"("prompt": "a", "max_tokens": 18446744073709551615)", "max_tokens"},
      {R"("prompt": "a", "max_tokens": 1e300)", "max_tokens"},
      {R"("prompt": "a", "min_tokens": 17)", "min_tokens"},
      {R"("prompt": "a", "n": 0)", "n"},
      {R"("prompt": "a", "n": 1000)", "n"},
      {R"("prompt": "a", "n": "2")", "n"},
      {R"("prompt": "a", "temperature": -0.5)", "temperature"},
      {R"("prompt": "a", "temperature": "hot")", "temperature"},
      {R"("prompt": "a", "temperature": [])", "temperature"},
      {R"("prompt": "a", "top_p": 1.5)", "top_p"},
      {R"("prompt": "a", "repeat_penalty": 0)", "repeat_penalty"},
      {R"("prompt": "a", "seed": 1.5)", "seed"},
      {R"("prompt": "a", "stop": 5)", "stop"},
      {R"("prompt": "a", "stop": ["x", ""])", "stop"},
      {R"("prompt": "a", "stop": ["x", 5])", "stop"},
      {R"("prompt": "a", "logit_bias": [1])", "logit_bias"},
      {R"("prompt": "a", "logit_bias": {"x": 1})", "logit_bias"},
      {R"("prompt": "a", "logit_bias": {"-1": 1})", "logit_bias"},
      {R"("prompt": "a", "logit_bias": {"1": "1"})", "logit_bias"},
      {R"("prompt": "a", "logit_bias": {"1": 101})", "logit_bias"},
      {R"("prompt": "a", "logprobs": 21)", "logprobs"},
      {R"("prompt": "a", "logprobs": true)", "logprobs"},
      {R"("prompt": "a", "echo": true, "suffix": "b")", "echo"},
      {R"("prompt": "a", "echo": true, "logprobs": 1, "n": 2)", "n"},
      {R"("prompt": "a", "prompt_logprobs": 21)", "prompt_logprobs"},
      {R"("prompt": "a", "best_of": 3)", "best_of"},
      {R"("prompt": "a", "suffix": 5)", "suffix"},
      {R"("prompt": "a", "stream": 1)", "stream"},
      {R"("prompt": "a", "stream_options": true)", "stream_options"},
      {R"("prompt": "a", "stream_options": {"include_usage": 1})",
       "stream_options.include_usage"},
      {R"("prompt": "a", "response_format": "json")", "response_format"},
      {R"("prompt": "a", "response_format": {"type": "xml"})",
       "response_format.type"},
      {R"("prompt": "a", "response_format": {"type": "json_schema"})",
       "response_format.json_schema.schema"},
      {R"("prompt": "a", "grammar": "root ::= \"a\"",
          "response_format": {"type": "json_object"})",
       "grammar"},
      {R"("prompt": "a", "model": 5)", "model"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.fields);
    ExpectFieldError(Completion(absl::StrCat("{", one.fields, "}")).status(),
                     one.param);
  }
}

TEST(ParseRequest, IntegersThatNoOneCountsToAreTooLarge) {
  for (const char* number : {"1000000000000000000000000000000", "1e30"}) {
    EXPECT_TRUE(absl::StrContains(
        Completion(
            absl::StrCat(R"({"prompt": "a", "max_tokens": )", number, "}"))
            .status()
            .message(),
        "too large"))
        << number;
  }
}

TEST(CompletionRequestTest, BodiesThatAreNoObjects) {
  for (const char* body : {"", " \n", "{", "[]", "5", "null", "\"a\"", "{]",
                           "{\"prompt\": \"a\"} x", "{\"prompt\": \"\xff\"}",
                           "{\"prompt\": 1e999}", "{\"prompt\": nan}"}) {
    SCOPED_TRACE(body);
    const absl::Status status = Completion(body).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "body")) << status;
  }
}

TEST(CompletionRequestTest, DepthAndWidthAreBounded) {
  const std::string deep =
      absl::StrCat("{\"x\": ", std::string(100000, '['), "}");
  EXPECT_TRUE(absl::StrContains(Completion(deep).status().message(),
                                "within each other"));
  // Brackets in strings do not count, nor does what comes one after the other.
  const std::string text(1000, '[');
  EXPECT_TRUE(
      Completion(absl::StrCat("{\"prompt\": \"\\\"", text, "\"}")).ok());
  std::string flat = "{\"prompt\": \"a\", \"x\": [[]";
  for (int i = 0; i < 1000; ++i) flat += ",[]";
  EXPECT_TRUE(Completion(flat + "]}").ok());
  std::string wide = "{\"prompt\": \"a\"";
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&wide, ",\"", i, "\":0");
  EXPECT_TRUE(absl::StrContains(Completion(wide + "}").status().message(),
                                "4096 fields"));
}

TEST(ChatRequestTest, MessagesArriveAsTemplatesWantThem) {
  const auto request = ParseChatCompletionRequest(
      R"({"messages": [
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "a"},
                                         {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "tool_calls": [
               {"id": "call_1", "type": "function", "function":
                  {"name": "f", "arguments": "{\"z\": 1, \"a\": 2}"}}]},
            {"role": "tool", "content": "3", "tool_call_id": "call_1"}]})",
      {});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(
      request->messages.dump(),
      R"([{"role":"system","content":"be brief"},)"
      R"({"role":"user","content":"a\nb"},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"call_1",)"
      R"("type":"function","function":{"name":"f","arguments":)"
      R"({"z":1,"a":2}}}]},)"
      R"({"role":"tool","content":"3","tool_call_id":"call_1"}])");
  EXPECT_EQ(request->generation.max_tokens, -1);
}

TEST(ChatRequestTest, ReasoningGoesBackAndItsFieldsReachTheTemplate) {
  const auto request = ParseChatCompletionRequest(
      R"({"messages": [
            {"role": "assistant", "content": "a", "reasoning_content": "r"},
            {"role": "assistant", "content": "b", "reasoning": "s"},
            {"role": "user", "content": "c", "reasoning_content": "t"}],
          "reasoning_effort": "none", "reasoning_format": "none",
          "chat_template_kwargs": {"thinking": true}})",
      {});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->messages[0]["reasoning_content"], "r");
  EXPECT_EQ(request->messages[1]["reasoning_content"], "s");
  EXPECT_FALSE(request->messages[2].contains("reasoning_content"));
  EXPECT_EQ(request->variables.dump(),
            R"({"thinking":true,"reasoning_effort":"none",)"
            R"("enable_thinking":false})");
  EXPECT_FALSE(request->separate_reasoning);
  const auto usual = Chat(R"("reasoning_effort": "high")");
  EXPECT_EQ(usual->variables.dump(), R"({"reasoning_effort":"high"})");
  EXPECT_TRUE(usual->separate_reasoning);
  ExpectFieldError(Chat(R"("reasoning_format": "all")").status(),
                   "reasoning_format");
  ExpectFieldError(Chat(R"("reasoning_effort": 3)").status(),
                   "reasoning_effort");
}

TEST(ChatRequestTest, ArgumentsOfEarlierCallsAreTextOrAnObject) {
  for (const char* arguments : {R"("{\"a\": 1}")", R"({"a": 1})"}) {
    const auto request = ParseChatCompletionRequest(
        absl::StrCat(R"({"messages": [{"role": "assistant", "tool_calls":
            [{"function": {"name": "f", "arguments": )",
                     arguments, "}}]}]}"),
        {});
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(
        request->messages[0]["tool_calls"][0]["function"]["arguments"].dump(),
        R"({"a":1})");
  }
}

TEST(ChatRequestTest, ArgumentsThatAreNoObjectStayText) {
  for (const char* arguments :
       {R"({\"a\": \"Bern and )", R"([1])", R"({\"a\": NaN})"}) {
    const auto request = ParseChatCompletionRequest(
        absl::StrCat(R"({"messages": [{"role": "assistant", "tool_calls":
            [{"function": {"name": "f", "arguments": ")",
                     arguments, R"("}}]}]})"),
        {});
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_TRUE(request->messages[0]["tool_calls"][0]["function"]["arguments"]
                    .is_string());
  }
}

TEST(ChatRequestTest, SomeToolsMayBeAllowedAndOneCall) {
  const std::string tools = R"("tools": [
      {"type": "function", "function": {"name": "f"}},
      {"type": "function", "function": {"name": "g"}}], )";
  const auto allowed = [&](const char* mode, const char* name) {
    return Chat(absl::StrCat(tools, R"("tool_choice": {"type": "allowed_tools",
        "allowed_tools": {"mode": ")",
                             mode, R"(", "tools": [{"type": "function",
        "function": {"name": ")",
                             name, R"("}}]}})"));
  };
  const auto request = allowed("auto", "g");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->tool_choice, ToolChoice::kAuto);
  EXPECT_EQ(request->allowed_tools, std::vector<std::string>{"g"});
  EXPECT_EQ(request->tools.size(), 2u);
  EXPECT_EQ(allowed("required", "g")->tool_choice, ToolChoice::kRequired);
  ExpectFieldError(allowed("always", "g").status(),
                   "tool_choice.allowed_tools.mode");
  ExpectFieldError(allowed("auto", "h").status(),
                   "tool_choice.allowed_tools.tools[0].function.name");
  EXPECT_FALSE(Chat("")->one_call);
  EXPECT_TRUE(Chat(R"("parallel_tool_calls": false)")->one_call);
  ExpectFieldError(Chat(R"("parallel_tool_calls": 7)").status(),
                   "parallel_tool_calls");
}

TEST(ChatRequestTest, LogprobsAreABooleanAndANumber) {
  EXPECT_FALSE(Chat("")->generation.top_logprobs.has_value());
  EXPECT_EQ(Chat(R"("logprobs": true)")->generation.top_logprobs, 0);
  EXPECT_EQ(
      Chat(R"("logprobs": true, "top_logprobs": 2)")->generation.top_logprobs,
      2);
  ExpectFieldError(Chat(R"("logprobs": 2)").status(), "logprobs");
  ExpectFieldError(Chat(R"("top_logprobs": 2)").status(), "top_logprobs");
  ExpectFieldError(Chat(R"("logprobs": true, "top_logprobs": 21)").status(),
                   "top_logprobs");
}

TEST(ChatRequestTest, TheNewerNameOfMaxTokensWins) {
  EXPECT_EQ(Chat(R"("max_completion_tokens": 3, "max_tokens": 5)")
                ->generation.max_tokens,
            3);
  EXPECT_EQ(Chat(R"("max_tokens": -1)")->generation.max_tokens, -1);
}

TEST(ChatRequestTest, FormatsArriveInTheirOrder) {
  const auto request = Chat(
      R"("response_format": {"type": "json_schema", "json_schema": {"name": "n",
         "schema": {"type": "object", "properties": {"z": {}, "a": {}}}}})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->generation.format, OutputFormat::kJsonSchema);
  EXPECT_EQ(request->generation.format_source,
            R"({"type":"object","properties":{"z":{},"a":{}}})");
  EXPECT_EQ(Chat(R"("response_format": {"type": "text"})")->generation.format,
            OutputFormat::kText);
  EXPECT_EQ(
      Chat(R"("response_format": {"type": "json_object"})")->generation.format,
      OutputFormat::kJson);
}

TEST(ChatRequestTest, FormatsInEverySpelling) {
  const struct {
    const char* fields;
    OutputFormat format;
    const char* source;
    const char* field;
  } cases[] = {
      {R"("response_format": {"type": "json_object", "schema": {"a": 1}})",
       OutputFormat::kJsonSchema, R"({"a":1})", "response_format"},
      {R"("response_format": {"type": "json_schema", "schema": {"a": 1}})",
       OutputFormat::kJsonSchema, R"({"a":1})", "response_format"},
      {R"("json_schema": {"a": 1})", OutputFormat::kJsonSchema, R"({"a":1})",
       "json_schema"},
      {R"("guided_json": "{\"a\": 1}")", OutputFormat::kJsonSchema,
       R"({"a":1})", "guided_json"},
      {R"("guided_regex": "a+")", OutputFormat::kRegex, "a+", "guided_regex"},
      {R"("guided_choice": ["a\"", "\n\\"])", OutputFormat::kGrammar,
       R"(root ::= "a\"" | "\x0a\\")", "guided_choice"},
      {R"("guided_grammar": "root ::= \"a\"")", OutputFormat::kGrammar,
       R"(root ::= "a")", "guided_grammar"},
      {R"("structured_outputs": {"json": {"a": 1}})", OutputFormat::kJsonSchema,
       R"({"a":1})", "structured_outputs.json"},
      {R"("structured_outputs": {"json_object": true})", OutputFormat::kJson,
       "", "structured_outputs.json_object"},
      {R"("structured_outputs": {"choice": ["x"]})", OutputFormat::kGrammar,
       R"(root ::= "x")", "structured_outputs.choice"}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.fields);
    const auto request = Chat(one.fields);
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->generation.format, one.format);
    EXPECT_EQ(request->generation.format_source, one.source);
    EXPECT_EQ(request->generation.format_field, one.field);
    EXPECT_FALSE(request->generation.strict_schema);
    EXPECT_FALSE(request->generation.open_schema);
  }
  EXPECT_TRUE(Chat(R"("response_format": {"type": "json_schema", "json_schema":
      {"strict": true, "schema": {}}})")
                  ->generation.strict_schema);
  EXPECT_TRUE(Chat(R"("structured_outputs": {"json": {},
      "disable_additional_properties": false})")
                  ->generation.open_schema);
  ExpectFieldError(Chat(R"("guided_json": {}, "json_schema": {})").status(),
                   "guided_json");
  ExpectFieldError(Chat(R"("guided_choice": [])").status(), "guided_choice");
  ExpectFieldError(Chat(R"("guided_json": "x")").status(), "guided_json");
  ExpectFieldError(
      Chat(R"("structured_outputs": {"structural_tag": {"a": 1}})").status(),
      "structured_outputs.structural_tag");
}

constexpr char kTools[] =
    R"("tools": [{"type": "function", "function": {"name": "f"}}])";

TEST(ChatRequestTest, ToolChoices) {
  EXPECT_EQ(Chat(kTools)->tool_choice, ToolChoice::kAuto);
  EXPECT_TRUE(Chat("")->tools.is_null());
  EXPECT_TRUE(Chat(R"("tools": [])")->tools.is_null());
  EXPECT_EQ(
      Chat(absl::StrCat(kTools, R"(, "tool_choice": "required")"))->tool_choice,
      ToolChoice::kRequired);
  const auto named = Chat(absl::StrCat(
      kTools,
      R"(, "tool_choice": {"type": "function", "function": {"name": "f"}})"));
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->tool_choice, ToolChoice::kNamed);
  EXPECT_EQ(named->tool_name, "f");
}

TEST(ChatRequestTest, ErrorsNameTheField) {
  const struct {
    const char* body;
    const char* param;
  } cases[] = {
      {R"({})", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"messages": {"messages": []}})", "messages"},
      {R"({"messages": "a"})", "messages"},
      {R"({"messages": ["a"]})", "messages[0]"},
      {R"({"messages": [{"content": "a"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "king", "content": "a"}]})",
       "messages[0].role"},
      {R"({"messages": [{"role": 5, "content": "a"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "user"}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": 5}]})",
       "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": "a"},
           {"role": "user", "content": [{"type": "image_url"}]}]})",
       "messages[1].content[0].type"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})",
       "messages[0].content[0].text"},
      {R"({"messages": [{"role": "user", "content": ["a"]}]})",
       "messages[0].content[0]"},
      {R"({"messages": [{"role": "assistant", "tool_calls": [{}]}]})",
       "messages[0].tool_calls[0].function.name"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.body);
    ExpectFieldError(ParseChatCompletionRequest(one.body, {}).status(),
                     one.param);
  }
  ExpectFieldError(Chat(R"("tools": {})").status(), "tools");
  ExpectFieldError(Chat(R"("tools": [{"type": "web"}])").status(),
                   "tools[0].type");
  ExpectFieldError(Chat(R"("tools": [{"function": {}}])").status(),
                   "tools[0].function.name");
  ExpectFieldError(Chat(R"("tool_choice": "required")").status(),
                   "tool_choice");
  ExpectFieldError(Chat(R"("tool_choice": "always")").status(), "tool_choice");
  ExpectFieldError(
      Chat(absl::StrCat(kTools,
                        R"(, "tool_choice": {"function": {"name": "g"}})"))
          .status(),
      "tool_choice.function.name");
  ExpectFieldError(Chat(R"("functions": [{"name": "f"}])").status(),
                   "functions");
  ExpectFieldError(Chat(R"("modalities": ["audio"])").status(), "modalities");
  ExpectFieldError(Chat(R"("chat_template_kwargs": 5)").status(),
                   "chat_template_kwargs");
}

TEST(OtherRequestsTest, TokensAndEmbeddings) {
  const auto text = ParseTokenizeRequest(
      R"({"content": "a", "add_special": true, "with_pieces": true})");
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text->add_special);
  EXPECT_TRUE(text->with_pieces);
  EXPECT_FALSE(text->parse_special);
  ExpectFieldError(ParseTokenizeRequest("{}").status(), "content");
  ExpectFieldError(ParseTokenizeRequest(R"({"content": 5})").status(),
                   "content");
  EXPECT_EQ(ParseDetokenizeRequest(R"({"tokens": [1, 2]})")->tokens,
            (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(ParseDetokenizeRequest(R"({"tokens": []})").ok());
  ExpectFieldError(ParseDetokenizeRequest("{}").status(), "tokens");
  ExpectFieldError(ParseDetokenizeRequest(R"({"tokens": 5})").status(),
                   "tokens");
  const auto inputs = ParseEmbeddingsRequest(
      R"({"input": ["a", "b"], "encoding_format": "base64"})", {});
  ASSERT_TRUE(inputs.ok());
  EXPECT_EQ(inputs->inputs.size(), 2u);
  EXPECT_TRUE(inputs->base64);
  ExpectFieldError(ParseEmbeddingsRequest("{}", {}).status(), "input");
  ExpectFieldError(
      ParseEmbeddingsRequest(R"({"input": "a", "encoding_format": "x"})", {})
          .status(),
      "encoding_format");
  EXPECT_FALSE(inputs->dimensions.has_value());
  EXPECT_EQ(ParseEmbeddingsRequest(R"({"input": "a", "dimensions": 5})", {})
                ->dimensions,
            5);
  for (const char* bad : {"0", "-1", "1.5", "\"5\""}) {
    ExpectFieldError(
        ParseEmbeddingsRequest(
            absl::StrCat(R"({"input": "a", "dimensions": )", bad, "}"), {})
            .status(),
        "dimensions");
  }
}

}  // namespace
}  // namespace weft
