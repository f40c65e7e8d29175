// Other dialects than OpenAI's chat, and what all of them have:
// log-probabilities of prompts, messages that go on, streams that tell that
// they are there, the request log. Answers are of the small model, or of the
// embedded one where they must be long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

using nlohmann::json;

class Routes : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    log_ = new std::string(TemporaryPath("requests.jsonl"));
    std::filesystem::remove(*log_);
    server_ = new Server({"--slots", "2", "--log-requests", *log_});
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  static json Ask(const std::string& path, const json& body) {
    const Answer answer = Post(*server_, path, body.dump());
    EXPECT_EQ(answer.status, 200) << path << " " << answer.text;
    return answer.json;
  }
  // Of a stream, the objects of its lines.
  static std::vector<json> Lines(const std::string& path, const json& body) {
    const Answer answer = Post(*server_, path, body.dump());
    EXPECT_EQ(answer.status, 200) << path << " " << answer.text;
    std::vector<json> lines;
    for (absl::string_view line :
         absl::StrSplit(answer.text, '\n', absl::SkipEmpty())) {
      lines.push_back(json::parse(std::string(line), nullptr, false));
      EXPECT_FALSE(lines.back().is_discarded()) << line;
    }
    return lines;
  }
  static std::vector<json> Stream(const std::string& path, json body) {
    body["stream"] = true;
    const Answer answer = Post(*server_, path, body.dump());
    EXPECT_EQ(answer.status, 200) << path << " " << answer.text;
    return Events(answer.text);
  }

  static Server* server_;
  static std::string* log_;
};

Server* Routes::server_ = nullptr;
std::string* Routes::log_ = nullptr;

const json kMessages = {{{"role", "user"}, {"content", "It is a truth"}}};
const json kTool = {{"type", "object"},
                    {"properties", {{"kind", {{"enum", {"x", "y"}}}}}},
                    {"required", {"kind"}},
                    {"additionalProperties", false}};

// A schema of finite many texts, so that a call ends.
json ToolOf(const std::string& schema) {
  return {{"name", "choose"}, {"description", "d"}, {schema, kTool}};
}

TEST_F(Routes, TheSameWithoutAVersion) {
  const json body = {
      {"prompt", "It is"}, {"max_tokens", 3}, {"temperature", 0}};
  EXPECT_EQ(Ask("/completions", body)["choices"],
            Ask("/v1/completions", body)["choices"]);
  const json chat = {
      {"messages", kMessages}, {"max_tokens", 3}, {"temperature", 0}};
  EXPECT_EQ(Ask("/chat/completions", chat)["choices"],
            Ask("/v1/chat/completions", chat)["choices"]);
  EXPECT_EQ(Get(*server_, "/models").json, Get(*server_, "/v1/models").json);
}

TEST_F(Routes, LogprobsOfPromptsAreThoseOfTextsToTheBit) {
  const json whole =
      Ask("/v1/completions", {{"prompt", {1, 42, 77}},
                              {"max_tokens", 40},
                              {"temperature", 0},
                              {"logprobs", 2},
                              {"ignore_eos", true}})["choices"][0]["logprobs"];
  const json native = Ask("/completion", {{"prompt", {1, 42, 77}},
                                          {"n_predict", 40},
                                          {"temperature", 0},
                                          {"ignore_eos", true},
                                          {"return_tokens", true}});
  json prompt = {1, 42, 77};
  for (const json& id : native["tokens"]) prompt.push_back(id);
  ASSERT_EQ(prompt.size(), 43u);
  // Twice: what comes from no cache and what might come from one.
  for (int i = 0; i < 2; ++i) {
    const json choice = Ask("/v1/completions", {{"prompt", prompt},
                                                {"max_tokens", 0},
                                                {"echo", true},
                                                {"logprobs", 2}})["choices"][0];
    const json& echoed = choice["logprobs"];
    for (const char* list :
         {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      ASSERT_EQ(echoed[list].size(), 43u) << list;
    }
    EXPECT_EQ(echoed["token_logprobs"][0], nullptr);
    EXPECT_EQ(echoed["top_logprobs"][0], nullptr);
    for (int k = 0; k < 40; ++k) {
      for (const char* list : {"tokens", "token_logprobs", "top_logprobs"}) {
        EXPECT_EQ(echoed[list][3 + k], whole[list][k]) << list << k;
      }
    }
    EXPECT_EQ(choice["finish_reason"], "length");
  }
  // What lm-evaluation-harness asks: one token more, whatever it is.
  const json asked = Ask("/v1/completions", {{"prompt", prompt},
                                             {"max_tokens", 1},
                                             {"echo", true},
                                             {"temperature", 0},
                                             {"logit_bias", {{"2", 100}}},
                                             {"logprobs", 1}})["choices"][0];
  EXPECT_EQ(asked["logprobs"]["token_logprobs"].size(), 44u);
  const json apart =
      Ask("/v1/completions",
          {{"prompt", prompt}, {"max_tokens", 0}, {"prompt_logprobs", 1}});
  const json& told = apart["choices"][0]["prompt_logprobs"];
  ASSERT_EQ(told.size(), 43u);
  EXPECT_EQ(told[0], nullptr);
  EXPECT_EQ(told[42][prompt[42].dump()]["logprob"],
            whole["token_logprobs"][39]);
  EXPECT_EQ(apart["choices"][0]["text"], "");
}

TEST_F(Routes, MessagesGoOn) {
  json messages = kMessages;
  messages.push_back({{"role", "assistant"}, {"content", "Sure, "}});
  const std::string opened =
      Ask("/apply-template", {{"messages", kMessages}})["prompt"];
  const std::string continued =
      Ask("/apply-template", {{"messages", messages}})["prompt"];
  EXPECT_TRUE(absl::EndsWith(continued, "Sure, ")) << continued;
  EXPECT_TRUE(absl::StartsWith(continued, opened.substr(0, 20)));
  const std::string closed =
      Ask("/apply-template",
          {{"messages", messages}, {"add_generation_prompt", false}})["prompt"];
  EXPECT_TRUE(absl::StartsWith(closed, continued)) << closed;
}

// A token of one byte is no UTF-8 by itself.
TEST_F(Routes, LogProbabilitiesOfBytes) {
  const int byte = 131;
  const json native = Ask("/completion", {{"prompt", "x"},
                                          {"n_predict", 3},
                                          {"n_probs", 2},
                                          {"logit_bias", {{byte, 100}}}});
  EXPECT_EQ(native["completion_probabilities"].size(), 3u);
  Ask("/v1/responses", {{"input", "hi"},
                        {"max_output_tokens", 20},
                        {"temperature", 2},
                        {"seed", 5},
                        {"include", {"message.output_text.logprobs"}},
                        {"top_logprobs", 20}});
}

TEST_F(Routes, NativeCompletion) {
  const json body = {{"prompt", "It is a truth"}, {"n_predict", 6},
                     {"temperature", 0},          {"n_probs", 2},
                     {"return_tokens", true},     {"ignore_eos", true}};
  const json whole = Ask("/completion", body);
  EXPECT_EQ(whole["stop"], true);
  EXPECT_EQ(whole["stop_type"], "limit");
  EXPECT_EQ(whole["tokens"].size(), 6u);
  EXPECT_EQ(whole["tokens_predicted"], 6);
  ASSERT_EQ(whole["completion_probabilities"].size(), 6u);
  EXPECT_EQ(whole["completion_probabilities"][0]["id"], whole["tokens"][0]);
  std::string text;
  std::vector<json> events = Stream("/completion", body);
  ASSERT_GT(events.size(), 1u);
  for (const json& event : events) {
    text += event["content"];
    EXPECT_EQ(event["stop"], &event == &events.back());
  }
  EXPECT_EQ(text, whole["content"]);
  EXPECT_EQ(events.back()["generation_settings"]["temperature"], 0);

  json stopped = body;
  stopped["stop"] = {whole["content"].get<std::string>().substr(2, 3)};
  EXPECT_EQ(Ask("/completion", stopped)["stop_type"], "word");
  const json two =
      Ask("/completion", {{"prompt", {"one", "two"}}, {"n_predict", 1}});
  EXPECT_EQ(two.size(), 2u);
  for (const auto& [field, value] :
       {std::pair<std::string, json>("mirostat", 2),
        {"n_predict", "x"},
        {"logit_bias", {{1}}},
        {"typical_p", 0.5}}) {
    json wrong = body;
    wrong[field] = value;
    const Answer answer = Post(*server_, "/completion", wrong.dump());
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.json["error"]["param"], field) << answer.text;
  }
  // The embedded model was not taught to fill in.
  EXPECT_EQ(
      Post(*server_, "/infill", R"({"input_prefix": "a", "input_suffix": "b"})")
          .status,
      400);
}

TEST_F(Routes, ProgressOfThePromptIsTold) {
  std::string prompt;
  for (int i = 0; i < 60; ++i) absl::StrAppend(&prompt, "and so on ", i, " ");
  const json body = {{"prompt", prompt},
                     {"max_tokens", 2},
                     {"cache_prompt", false},
                     {"return_progress", true}};
  int64_t last = 0, told = 0;
  for (const json& event : Stream("/v1/completions", body)) {
    if (!event.contains("prompt_progress")) continue;
    ++told;
    const json& progress = event["prompt_progress"];
    EXPECT_GE(progress["processed"], last);
    last = progress["processed"];
    EXPECT_LE(last, progress["total"]);
  }
  EXPECT_GT(told, 0);
  json silent = body;
  silent.erase("return_progress");
  for (const json& event : Stream("/v1/completions", silent)) {
    EXPECT_FALSE(event.contains("prompt_progress"));
  }
}

TEST_F(Routes, OllamaGenerates) {
  const json options = {{"num_predict", 6}, {"temperature", 0}};
  const json body = {{"model", "any"},
                     {"prompt", "It is a truth"},
                     {"options", options},
                     {"stream", false}};
  const json whole = Ask("/api/generate", body);
  EXPECT_EQ(whole["done"], true);
  EXPECT_EQ(whole["model"], "any");
  EXPECT_GT(whole["prompt_eval_count"], 0);
  json streaming = body;
  streaming.erase("stream");  // is meant
  std::string text;
  const std::vector<json> lines = Lines("/api/generate", streaming);
  for (const json& line : lines) {
    text += line["response"];
    EXPECT_EQ(line["done"], &line == &lines.back());
  }
  EXPECT_EQ(text, whole["response"]);
  json raw = body;
  raw["raw"] = true;
  EXPECT_EQ(
      Ask("/api/generate", raw)["prompt_eval_count"],
      Ask("/v1/completions", {{"prompt", "It is a truth"},
                              {"max_tokens", 1}})["usage"]["prompt_tokens"]);
  EXPECT_EQ(Ask("/api/generate", {{"model", "any"}})["done_reason"], "load");
  json wrong = body;
  wrong["options"] = {{"temperature", "hot"}};
  const Answer answer = Post(*server_, "/api/generate", wrong.dump());
  EXPECT_EQ(answer.status, 400);
  ASSERT_TRUE(answer.json["error"].is_string()) << answer.text;
  EXPECT_TRUE(absl::StrContains(answer.json["error"].get<std::string>(),
                                "options.temperature"));
}

TEST_F(Routes, OllamaChats) {
  const json body = {{"model", "any"},
                     {"messages", kMessages},
                     {"options", {{"num_predict", 6}, {"temperature", 0}}},
                     {"stream", false}};
  const json whole = Ask("/api/chat", body);
  EXPECT_EQ(whole["message"]["role"], "assistant");
  json streaming = body;
  streaming["stream"] = true;
  std::string text;
  for (const json& line : Lines("/api/chat", streaming)) {
    text += line["message"]["content"];
  }
  EXPECT_EQ(text, whole["message"]["content"]);
  json format = body;
  format["format"] = kTool;
  format["options"]["num_predict"] = 100;
  const json chosen = json::parse(
      Ask("/api/chat", format)["message"]["content"].get<std::string>());
  EXPECT_TRUE(chosen["kind"] == "x" || chosen["kind"] == "y");
  // Its own answer with a call, and the result, sent back.
  json second = body;
  second["messages"].push_back(
      {{"role", "assistant"},
       {"content", ""},
       {"tool_calls",
        {{{"function",
           {{"name", "choose"}, {"arguments", {{"kind", "x"}}}}}}}}});
  second["messages"].push_back(
      {{"role", "tool"}, {"tool_name", "choose"}, {"content", "done"}});
  EXPECT_EQ(Ask("/api/chat", second)["done"], true);
}

TEST_F(Routes, OllamaTellsOfTheModel) {
  EXPECT_TRUE(Get(*server_, "/api/version").json["version"].is_string());
  const json tags = Get(*server_, "/api/tags").json["models"];
  ASSERT_EQ(tags.size(), 1u);
  const std::string name = tags[0]["name"];
  EXPECT_EQ(Get(*server_, "/api/ps").json["models"][0]["name"], name);
  const json shown = Ask("/api/show", {{"model", name}});
  EXPECT_EQ(shown["capabilities"][0], "completion");
  EXPECT_TRUE(shown["model_info"].contains("general.architecture"));
  const Answer other = Post(*server_, "/api/show", R"({"model": "other"})");
  EXPECT_EQ(other.status, 404);
  EXPECT_EQ(other.json["error"], "model 'other' not found");
  EXPECT_EQ(Post(*server_, "/api/embed", R"({"input": "a"})").status, 400);
}

TEST_F(Routes, Messages) {
  const json body = {{"model", "any"},
                     {"max_tokens", 6},
                     {"temperature", 0},
                     {"system", {{{"type", "text"}, {"text", "Be kind."}}}},
                     {"messages", kMessages}};
  const json whole = Ask("/v1/messages", body);
  EXPECT_EQ(whole["type"], "message");
  EXPECT_EQ(whole["stop_reason"], "max_tokens");
  ASSERT_EQ(whole["content"].size(), 1u);
  EXPECT_EQ(whole["usage"]["output_tokens"], 6);
  const json counted = Ask("/v1/messages/count_tokens", body);
  EXPECT_EQ(counted["input_tokens"],
            whole["usage"]["input_tokens"].get<int64_t>() +
                whole["usage"]["cache_read_input_tokens"].get<int64_t>());

  std::string text;
  std::vector<std::string> types;
  for (const json& event : Stream("/v1/messages", body)) {
    const std::string type = event["type"];
    if (types.empty() || types.back() != type) types.push_back(type);
    if (type == "content_block_delta") text += event["delta"]["text"];
    if (type == "message_delta") {
      EXPECT_EQ(event["delta"]["stop_reason"], "max_tokens");
      EXPECT_EQ(event["usage"]["output_tokens"], 6);
    }
  }
  EXPECT_EQ(text, whole["content"][0]["text"]);
  EXPECT_EQ(types,
            (std::vector<std::string>{
                "message_start", "content_block_start", "content_block_delta",
                "content_block_stop", "message_delta", "message_stop"}));

  json stopping = body;
  stopping["stop_sequences"] = {text.substr(2, 3)};
  const json stopped = Ask("/v1/messages", stopping);
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], text.substr(2, 3));

  for (const char* wrong :
       {R"({"messages": [{"role": "user", "content": "a"}]})",
        R"({"max_tokens": 5, "messages": []})",
        R"({"max_tokens": 5, "messages": [{"role": "system", "content": ""}]})",
        R"({"max_tokens": 5, "messages": [{"role": "user", "content":
            [{"type": "image"}]}]})",
        R"({"max_tokens": 5, "messages": [{"role": "user", "content": "a"}],
            "tools": [{"type": "web_search_20250305", "name": "w"}]})"}) {
    const Answer answer = Post(*server_, "/v1/messages", wrong);
    EXPECT_EQ(answer.status, 400) << wrong;
    EXPECT_EQ(answer.json["type"], "error") << answer.text;
    EXPECT_EQ(answer.json["error"]["type"], "invalid_request_error");
  }
}

// What weft adds has one name everywhere: a wrong value is refused, so it was
// read.
TEST_F(Routes, OwnFieldsAreReadInEveryDialect) {
  const json messages = {{{"role", "user"}, {"content", "It is"}}};
  const std::pair<const char*, json> kRequests[] = {
      {"/v1/completions", {{"prompt", "It is"}, {"max_tokens", 2}}},
      {"/v1/chat/completions", {{"messages", messages}, {"max_tokens", 2}}},
      {"/v1/messages", {{"messages", messages}, {"max_tokens", 2}}},
      {"/v1/responses", {{"input", "It is"}, {"max_output_tokens", 2}}},
      {"/completion", {{"prompt", "It is"}, {"n_predict", 2}}},
      {"/api/generate",
       {{"prompt", "It is"}, {"options", {{"num_predict", 2}}}}},
      {"/api/chat",
       {{"messages", messages}, {"options", {{"num_predict", 2}}}}}};
  for (const auto& [path, request] : kRequests) {
    for (const auto& [name, right, wrong] :
         {std::tuple<const char*, json, json>{"seed", 7, "x"},
          {"speculate", "off", "sometimes"},
          {"cache_prompt", false, 3},
          {"context_overflow", "stop", "never"},
          {"id_slot", 1, "first"}}) {
      SCOPED_TRACE(absl::StrCat(path, " ", name));
      for (const bool is_right : {true, false}) {
        json body = request;
        json& fields = body.contains("options") ? body["options"] : body;
        fields[name] = is_right ? right : wrong;
        const Answer answer = Post(*server_, path, body.dump());
        EXPECT_EQ(answer.status, is_right ? 200 : 400) << answer.text;
        if (!is_right) {
          EXPECT_THAT(answer.text, testing::HasSubstr(name));
        }
      }
    }
  }
}

TEST_F(Routes, MessagesCallTools) {
  json body = {{"model", "any"},
               {"max_tokens", 200},
               {"messages", kMessages},
               {"tools", {ToolOf("input_schema")}},
               {"tool_choice", {{"type", "any"}}}};
  const json whole = Ask("/v1/messages", body);
  EXPECT_EQ(whole["stop_reason"], "tool_use") << whole;
  const json use = whole["content"].back();
  ASSERT_EQ(use["type"], "tool_use");
  EXPECT_EQ(use["name"], "choose");
  EXPECT_TRUE(use["input"].contains("kind")) << use;
  std::string arguments;
  bool started = false;
  for (const json& event : Stream("/v1/messages", body)) {
    if (event["type"] == "content_block_start") {
      started = started || event["content_block"]["type"] == "tool_use";
    }
    if (event["type"] == "content_block_delta" &&
        event["delta"]["type"] == "input_json_delta") {
      arguments += event["delta"]["partial_json"];
    }
  }
  EXPECT_TRUE(started);
  EXPECT_TRUE(json::parse(arguments).contains("kind"));
  // The second turn.
  body["messages"].push_back(
      {{"role", "assistant"}, {"content", whole["content"]}});
  body["messages"].push_back(
      {{"role", "user"},
       {"content",
        {{{"type", "tool_result"},
          {"tool_use_id", use["id"]},
          {"content", {{{"type", "text"}, {"text", "done"}}}}}}}});
  body["tool_choice"] = {{"type", "none"}};
  body["max_tokens"] = 3;
  EXPECT_EQ(Ask("/v1/messages", body)["role"], "assistant");
}

TEST_F(Routes, Responses) {
  const json body = {{"model", "any"},
                     {"input", "It is a truth"},
                     {"instructions", "Be kind."},
                     {"temperature", 0},
                     {"max_output_tokens", 6}};
  const json whole = Ask("/v1/responses", body);
  EXPECT_EQ(whole["object"], "response");
  EXPECT_EQ(whole["status"], "incomplete");
  EXPECT_EQ(whole["incomplete_details"]["reason"], "max_output_tokens");
  ASSERT_EQ(whole["output"].size(), 1u);
  const std::string said = whole["output"][0]["content"][0]["text"];
  std::string text;
  std::vector<std::string> types;
  int64_t number = 0;
  for (const json& event : Stream("/v1/responses", body)) {
    EXPECT_EQ(event["sequence_number"], number++);
    const std::string type = event["type"];
    if (types.empty() || types.back() != type) types.push_back(type);
    if (type == "response.output_text.delta") text += event["delta"];
    if (type == "response.incomplete") {
      EXPECT_EQ(event["response"]["output"][0]["content"][0]["text"], said);
      EXPECT_EQ(event["response"]["usage"]["output_tokens"], 6);
    }
  }
  EXPECT_EQ(text, said);
  EXPECT_EQ(types,
            (std::vector<std::string>{
                "response.created", "response.in_progress",
                "response.output_item.added", "response.content_part.added",
                "response.output_text.delta", "response.output_text.done",
                "response.content_part.done", "response.output_item.done",
                "response.incomplete"}));
}

TEST_F(Routes, ResponsesGoOnFromEarlierOnes) {
  const json first = Ask("/v1/responses", {{"input", "It is a truth"},
                                           {"temperature", 0},
                                           {"max_output_tokens", 6}});
  const std::string id = first["id"];
  EXPECT_EQ(Get(*server_, "/v1/responses/" + id).json, first);
  const json more = {{"temperature", 0}, {"max_output_tokens", 6}};
  json kept = more, stateless = more;
  kept["input"] = "And then?";
  kept["previous_response_id"] = id;
  stateless["input"] = {{{"role", "user"}, {"content", "It is a truth"}},
                        first["output"][0],
                        {{"role", "user"}, {"content", "And then?"}}};
  const json a = Ask("/v1/responses", kept),
             b = Ask("/v1/responses", stateless);
  EXPECT_EQ(a["output"][0]["content"], b["output"][0]["content"]);
  EXPECT_EQ(a["usage"]["input_tokens"], b["usage"]["input_tokens"]);
  EXPECT_GT(a["usage"]["input_tokens"], first["usage"]["input_tokens"]);
  EXPECT_EQ(server_->Client().Delete("/v1/responses/" + id)->status, 200);
  EXPECT_EQ(Get(*server_, "/v1/responses/" + id).status, 404);
  const Answer gone = Post(*server_, "/v1/responses", kept.dump());
  EXPECT_EQ(gone.status, 400);
  EXPECT_EQ(gone.json["error"]["param"], "previous_response_id");
  const json forgotten =
      Ask("/v1/responses",
          {{"input", "a"}, {"store", false}, {"max_output_tokens", 1}});
  EXPECT_EQ(Get(*server_, "/v1/responses/" + forgotten["id"].get<std::string>())
                .status,
            404);
  for (const char* wrong :
       {R"({})", R"({"input": [{"type": "item_reference", "id": "x"}]})",
        R"({"input": "a", "background": true})",
        R"({"input": "a", "tools": [{"type": "web_search"}]})",
        R"({"input": [{"role": "user", "content":
            [{"type": "input_image"}]}]})"}) {
    EXPECT_EQ(Post(*server_, "/v1/responses", wrong).status, 400) << wrong;
  }
}

TEST_F(Routes, ResponsesCallTools) {
  json tool = ToolOf("parameters");
  tool["type"] = "function";
  json body = {{"input", "It is a truth"},
               {"max_output_tokens", 200},
               {"tools", {tool}},
               {"tool_choice", {{"type", "function"}, {"name", "choose"}}}};
  const json whole = Ask("/v1/responses", body);
  const json call = whole["output"].back();
  ASSERT_EQ(call["type"], "function_call") << whole;
  EXPECT_EQ(whole["status"], "completed");
  EXPECT_TRUE(
      json::parse(call["arguments"].get<std::string>()).contains("kind"));
  std::string arguments;
  for (const json& event : Stream("/v1/responses", body)) {
    if (event["type"] == "response.function_call_arguments.delta") {
      arguments += event["delta"];
    }
    if (event["type"] == "response.function_call_arguments.done") {
      EXPECT_EQ(event["arguments"], arguments);
    }
  }
  EXPECT_TRUE(json::parse(arguments).contains("kind"));
  EXPECT_EQ(
      Ask("/v1/responses", {{"previous_response_id", whole["id"]},
                            {"max_output_tokens", 3},
                            {"input",
                             {{{"type", "function_call_output"},
                               {"call_id", call["call_id"]},
                               {"output", "done"}}}}})["output"][0]["type"],
      "message");
  json format = {{"input", "It is a truth"}, {"max_output_tokens", 200}};
  format["text"]["format"] = {
      {"type", "json_schema"}, {"name", "n"}, {"schema", kTool}};
  EXPECT_TRUE(json::parse(Ask("/v1/responses",
                              format)["output"][0]["content"][0]["text"]
                              .get<std::string>())
                  .contains("kind"));
}

// The small model with tokens for filling in.
std::string FillingModel() {
  const std::string path = TemporaryPath("filling.gguf");
  const auto file = GgufFile::Open(SmallModel("00-valid.gguf"));
  EXPECT_TRUE(file.ok()) << file.status();
  GgufWriter writer;
  writer.CopyMetadata(*file);
  writer.SetUint32("tokenizer.ggml.fim_pre_token_id", 260);
  writer.SetUint32("tokenizer.ggml.fim_suf_token_id", 261);
  writer.SetUint32("tokenizer.ggml.fim_mid_token_id", 262);
  for (const GgufTensor& tensor : file->tensors()) {
    writer.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
  }
  EXPECT_TRUE(writer.WriteTo(path).ok());
  return path;
}

TEST(RoutesTest, WhatStandsBetweenIsFilledIn) {
  const std::string log = TemporaryPath("infill.jsonl");
  std::filesystem::remove(log);
  const Server server({FillingModel(), "--log-requests", log});
  const auto prompt_of = [&](const std::string& path, const json& body) {
    const Answer answer = Post(server, path, body.dump());
    EXPECT_EQ(answer.status, 200) << answer.text;
    const std::vector<std::string> lines =
        absl::StrSplit(ReadFile(log), '\n', absl::SkipEmpty());
    return json::parse(lines.back())["request"]["prompts"][0];
  };
  const json expected = {1, 260, 286, 264, 290, 261, 286, 264, 290, 262};
  EXPECT_EQ(prompt_of("/infill", {{"input_prefix", "hel"},
                                  {"prompt", "lo"},
                                  {"input_suffix", "hello"},
                                  {"n_predict", 1}}),
            expected);
  EXPECT_EQ(
      prompt_of("/v1/completions",
                {{"prompt", "hello"}, {"suffix", "hello"}, {"max_tokens", 1}}),
      expected);
  EXPECT_EQ(prompt_of("/api/generate", {{"prompt", "hello"},
                                        {"suffix", "hello"},
                                        {"options", {{"num_predict", 1}}},
                                        {"stream", false}}),
            expected);
  // Control tokens in what stands around are text.
  for (const json& id :
       prompt_of("/infill", {{"input_prefix", "</s>"}, {"n_predict", 1}})) {
    EXPECT_NE(id, 2);
  }
  const Answer wrong = Post(server, "/infill", R"({"input_extra": [5]})");
  EXPECT_EQ(wrong.status, 400);
  const json shown = Post(server, "/api/show", R"({"model": "filling"})").json;
  EXPECT_EQ(shown["capabilities"][1], "insert") << shown;
}

TEST(RoutesTest, SlotsAreSavedAndRestored) {
  const std::string folder = TemporaryPath("slots");
  std::filesystem::create_directories(folder);
  const std::vector<std::string> arguments = {"--slots", "2",
                                              "--slot-save-path", folder};
  std::string prompt;
  for (int i = 0; i < 30; ++i) absl::StrAppend(&prompt, "and so on ", i, " ");
  const json body = {{"prompt", prompt},
                     {"max_tokens", 4},
                     {"temperature", 0},
                     {"id_slot", 1}};
  json first;
  int64_t saved = 0;
  {
    const Server server(arguments);
    first = Post(server, "/v1/completions", body.dump()).json;
    const json slots = Get(server, "/slots").json;
    ASSERT_EQ(slots.size(), 2u);
    EXPECT_EQ(slots[0]["n_tokens"], 0);
    EXPECT_EQ(slots[1]["n_tokens"],
              first["usage"]["prompt_tokens"].get<int64_t>() + 4);
    EXPECT_EQ(slots[1]["is_processing"], false);
    const Answer answer =
        Post(server, "/slots/1?action=save", R"({"filename": "a.json"})");
    EXPECT_EQ(answer.status, 200) << answer.text;
    saved = answer.json["n_saved"];
    EXPECT_EQ(saved, slots[1]["n_tokens"]);
    for (const auto& [path, name] :
         {std::pair("/slots/1?action=save", R"({"filename": "../a"})"),
          {"/slots/1?action=save", R"({"filename": ".a"})"},
          {"/slots/1?action=restore", R"({"filename": "b"})"},
          {"/slots/1?action=lose", "{}"},
          {"/slots/1", "{}"}}) {
      EXPECT_EQ(Post(server, path, name).status, 400) << path << name;
    }
    EXPECT_EQ(Post(server, "/slots/2?action=erase", "{}").status, 404);
    EXPECT_EQ(Post(server, "/slots/1?action=erase", "{}").json["n_erased"],
              saved);
    json wrong = body;
    wrong["id_slot"] = 2;
    EXPECT_EQ(Post(server, "/v1/completions", wrong.dump()).status, 400);
  }
  const Server server(arguments);
  const Answer restored =
      Post(server, "/slots/0?action=restore", R"({"filename": "a.json"})");
  EXPECT_EQ(restored.status, 200) << restored.text;
  EXPECT_EQ(restored.json["n_restored"], saved);
  const json again = Post(server, "/v1/completions", body.dump()).json;
  EXPECT_EQ(again["choices"], first["choices"]);
  EXPECT_EQ(again["usage"]["prompt_tokens_details"]["cached_tokens"],
            again["usage"]["prompt_tokens"].get<int64_t>() - 1);
  WriteTextFile(folder + "/damaged", R"({"model": "x", "tokens": [-1]})");
  EXPECT_EQ(
      Post(server, "/slots/0?action=restore", R"({"filename": "damaged"})")
          .status,
      400);
}

// Distances of vectors would look like an answer.
TEST(RoutesTest, OnlyRerankersRank) {
  for (const char* model : {"tests/data/golden/arch/bert.gguf",
                            "tests/data/malformed/00-valid.gguf"}) {
    const Server server({model});
    for (const char* path : {"/v1/rerank", "/rerank"}) {
      const Answer answer =
          Post(server, path, R"({"query": "a", "documents": ["b", "c"]})");
      EXPECT_EQ(answer.status, 400);
      EXPECT_TRUE(absl::StrContains(answer.text, "is no reranker"));
    }
  }
}

TEST(RoutesTest, DocumentsAreRanked) {
  const Server server({"tests/data/golden/embeddings/bert-reranker.gguf"});
  const json documents = {"the first", "a", "of other things"};
  const json ranked =
      Post(server, "/v1/rerank",
           json{{"query", "the other"}, {"documents", documents}}.dump())
          .json["results"];
  ASSERT_EQ(ranked.size(), 3u);
  for (size_t i = 1; i < ranked.size(); ++i) {
    EXPECT_GE(ranked[i - 1]["relevance_score"], ranked[i]["relevance_score"]);
    EXPECT_NE(ranked[i - 1]["index"], ranked[i]["index"]);
  }
  const json first = Post(server, "/rerank",
                          json{{"query", "the other"},
                               {"documents", documents},
                               {"return_documents", true},
                               {"top_n", 1}}
                              .dump())
                         .json["results"];
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0]["index"], ranked[0]["index"]);
  EXPECT_EQ(first[0]["document"]["text"],
            documents[ranked[0]["index"].get<int>()]);
  const json texts =
      Post(server, "/rerank",
           json{{"query", "the other"}, {"texts", documents}}.dump())
          .json;
  EXPECT_EQ(texts[0]["score"], ranked[0]["relevance_score"]);
  EXPECT_EQ(
      Post(server, "/rerank", R"({"query": "a", "documents": []})").status,
      400);
}

TEST(RoutesTest, KeysMayComeAsXApiKey) {
  const std::string keys = TemporaryPath("route-keys");
  WriteTextFile(keys, "secret\n");
  const Server server({SmallModel("00-valid.gguf"), "--api-key-file", keys});
  const auto ask = [&](const httplib::Headers& headers) {
    return server.Client().Post(
        "/v1/messages", headers,
        R"({"max_tokens": 1, "messages": [{"role": "user", "content": "a"}]})",
        "application/json");
  };
  EXPECT_EQ(ask({{"x-api-key", "secret"}})->status, 200);
  EXPECT_EQ(ask({{"Authorization", "Bearer secret"}})->status, 200);
  const auto refused = ask({{"x-api-key", "other"}});
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(json::parse(refused->body)["error"]["type"],
            "authentication_error");
}

// One text has the only slot for as long as the other listens.
TEST(RoutesTest, AStreamThatWaitsTellsThatItIsThere) {
  const Server server({"--slots", "1", "--silence-seconds", "1"});
  const std::string endless =
      R"({"prompt": "a", "max_tokens": 100000, "ignore_eos": true,
          "context_overflow": "shift", "stream": true})";
  const auto listen = [&](const std::string& path, const std::string& body,
                          std::function<bool(const std::string&)> more) {
    httplib::Client client = server.Client();
    httplib::Request request;
    request.method = "POST";
    request.path = path;
    request.headers = {{"Content-Type", "application/json"}};
    request.body = body;
    std::string text;
    request.content_receiver = [&](const char* data, size_t size, uint64_t,
                                   uint64_t) {
      text.append(data, size);
      return more(text);
    };
    client.send(request);
    return text;
  };
  std::atomic<bool> begun{false}, over{false};
  std::thread first([&] {
    listen("/v1/completions", endless, [&](const std::string&) {
      begun = true;
      return !over;
    });
  });
  while (!begun) std::this_thread::yield();
  for (const auto& [path, word] :
       {std::pair("/v1/completions", ": still here\n\n"),
        {"/api/generate", "\"response\":\"\""}}) {
    const std::string said =
        listen(path, endless, [word = word](const std::string& text) {
          return !absl::StrContains(text, word);
        });
    EXPECT_TRUE(absl::StrContains(said, word)) << said;
  }
  over = true;
  first.join();
}

// Last: the log has what the tests before it asked.
TEST_F(Routes, WhatWasLoggedIsTheSameAgain) {
  Ask("/v1/chat/completions", {{"messages", kMessages},
                               {"max_tokens", 20},
                               {"n", 2},
                               {"temperature", 1.5}});
  Ask("/v1/completions",
      {{"prompt", {"one", "two"}}, {"max_tokens", 9}, {"stop", {"e"}}});
  const std::string text = ReadFile(*log_);
  const std::vector<std::string> lines =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_GT(lines.size(), 1u);
  const json last = json::parse(lines.back());
  EXPECT_EQ(last["route"], "/v1/completions");
  EXPECT_TRUE(last["request"]["seed"].is_number_integer());
  const json same = WeftJson({"replay", *log_, "--json"});
  EXPECT_EQ(same["requests"], lines.size());
  EXPECT_EQ(same["different"], 0);
  EXPECT_GT(same["tokens"], 29);

  json changed = json::parse(lines[lines.size() - 2]);
  changed["answers"][1]["tokens"][3] = 5;
  const std::string other = TemporaryPath("changed.jsonl");
  WriteTextFile(other, changed.dump() + "\n");
  const RunResult result = Weft({"replay", other});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(result.out, "choice 1: token 3")) << result.out;
  WriteTextFile(other, "{}\n");
  ExpectError(Weft({"replay", other, "--quiet"}), 1);
}

}  // namespace
}  // namespace weft
