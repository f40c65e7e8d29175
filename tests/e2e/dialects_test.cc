// One model's answer in every dialect: what is a call in one is one in all, and
// what a client sends back is taken.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/scripted_model.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr char kHermes[] =
    "{%- if tools %}{{ tools | tojson }}{% endif %}"
    "{%- for m in messages %}[{{ m.role }}]{{ m.content }}"
    "{%- for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}"
    "</tool_call>{% endfor %}{% endfor %}<|go|>";

json Tool(const std::string& name) {
  return {
      {"name", name},
      {"description", "d"},
      {"parameters",
       {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}}}};
}

// What came of one request, in one shape.
struct Said {
  std::string text, finish;
  std::vector<std::string> calls;     // whole ones, by their arguments
  std::vector<std::string> statuses;  // of all that have begun, where told
  json body;
};

class Dialects {
 public:
  explicit Dialects(const Server& server, int tokens = 200)
      : server_(server), tokens_(tokens) {}

  Said Chat(bool stream) const {
    json body = Common(stream);
    body["max_tokens"] = tokens_;
    body["tools"] =
        json::array({{{"type", "function"}, {"function", Tool("f")}}});
    Said said;
    const auto add = [&](const json& message) {
      said.text += TextOf(message, "content");
      for (const json& call : message.value("tool_calls", json::array())) {
        const json& function = call["function"];
        if (function.contains("name")) said.calls.emplace_back();
        said.calls.back() += function.value("arguments", "");
      }
    };
    for (const json& answer : Ask("/v1/chat/completions", body, stream)) {
      for (const json& choice : answer["choices"]) {
        add(choice[stream ? "delta" : "message"]);
        if (choice["finish_reason"].is_string()) {
          said.finish = choice["finish_reason"];
        }
      }
      said.body = answer;
    }
    return said;
  }

  Said Messages(bool stream) const {
    json body = Common(stream);
    body["max_tokens"] = tokens_;
    json tool = Tool("f");
    tool["input_schema"] = tool["parameters"];
    tool.erase("parameters");
    body["tools"] = json::array({tool});
    Said said;
    for (const json& answer : Ask("/v1/messages", body, stream)) {
      const auto block = [&](const json& each) {
        if (each["type"] == "text") said.text += each["text"];
        if (each["type"] == "tool_use") {
          said.calls.push_back(stream ? "" : each["input"].dump());
        }
      };
      if (!stream) {
        for (const json& each : answer["content"]) block(each);
        said.finish = answer["stop_reason"];
      } else if (answer["type"] == "content_block_start") {
        block(answer["content_block"]);
      } else if (answer["type"] == "content_block_delta") {
        said.text += TextOf(answer["delta"], "text");
        if (answer["delta"].contains("partial_json")) {
          said.calls.back() += TextOf(answer["delta"], "partial_json");
        }
      } else if (answer["type"] == "message_delta") {
        said.finish = answer["delta"]["stop_reason"];
      }
      said.body = answer;
    }
    return said;
  }

  Said Responses(bool stream) const {
    json body = {{"input", "q"}, {"temperature", 0}, {"stream", stream}};
    body["max_output_tokens"] = tokens_;
    json tool = Tool("f");
    tool["type"] = "function";
    body["tools"] = json::array({tool});
    json last = Ask("/v1/responses", body, stream).back();
    if (stream) last = last["response"];
    Said said;
    for (const json& item : last["output"]) {
      if (item["type"] == "message") said.text += item["content"][0]["text"];
      if (item["type"] == "function_call") {
        said.calls.push_back(item["arguments"]);
        said.statuses.push_back(item["status"]);
      }
    }
    said.finish = last["status"];
    said.body = last;
    return said;
  }

  Said Ollama(bool stream) const {
    json body = Common(stream);
    body["options"] = {{"temperature", 0}, {"num_predict", tokens_}};
    body["tools"] =
        json::array({{{"type", "function"}, {"function", Tool("f")}}});
    Said said;
    const Answer answer = Post(server_, "/api/chat", body.dump());
    for (const auto& line :
         absl::StrSplit(answer.text, '\n', absl::SkipEmpty())) {
      const json part = json::parse(line);
      said.text += TextOf(part["message"], "content");
      for (const json& call :
           part["message"].value("tool_calls", json::array())) {
        EXPECT_TRUE(call["function"]["arguments"].is_object()) << answer.text;
        said.calls.push_back(call["function"]["arguments"].dump());
      }
      if (part["done"] == true) said.finish = part["done_reason"];
      said.body = std::string(line);
    }
    return said;
  }

 private:
  static json Common(bool stream) {
    return {{"model", "m"},
            {"temperature", 0},
            {"stream", stream},
            {"messages", {{{"role", "user"}, {"content", "q"}}}}};
  }

  static std::string TextOf(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string()
               ? found->get<std::string>()
               : "";
  }

  std::vector<json> Ask(const std::string& path, const json& body,
                        bool stream) const {
    const Answer answer = Post(server_, path, body.dump());
    EXPECT_EQ(answer.status, 200) << path << " " << answer.text;
    std::vector<json> answers;
    if (!stream) return {json::parse(answer.text)};
    for (const auto& event : Events(answer.text)) {
      answers.push_back(json::parse(event.dump()));
    }
    return answers;
  }

  const Server& server_;
  const int tokens_;
};

std::string CallOf(const std::string& arguments) {
  return absl::StrCat("<tool_call>{\"name\": \"f\", \"arguments\": ", arguments,
                      "}</tool_call>");
}

// Nobody is told to do what the model did not say.
TEST(Dialects, ABrokenCallIsTextAndNothingIsCalled) {
  int number = 0;
  for (const std::string arguments :
       {R"({"city":"C:\dir"})", R"({"city": "Bern",})",
        "{\"city\": \"x\ny\"}"}) {
    const std::string text = absl::StrCat("Text ", CallOf(arguments));
    const Server server({ScriptedModel(
        absl::StrCat("broken", number++, ".gguf"), text, kHermes)});
    const Dialects dialects(server);
    for (const bool stream : {false, true}) {
      const Said chat = dialects.Chat(stream);
      EXPECT_EQ(chat.finish, "stop") << stream;
      EXPECT_EQ(chat.text, text) << stream;
      const Said messages = dialects.Messages(stream);
      EXPECT_EQ(messages.finish, "end_turn") << stream;
      EXPECT_EQ(messages.text, text) << stream;
      const Said responses = dialects.Responses(stream);
      EXPECT_EQ(responses.text, text) << stream;
      for (const std::string& status : responses.statuses) {
        EXPECT_EQ(status, "incomplete");
      }
      const Said ollama = dialects.Ollama(stream);
      EXPECT_EQ(ollama.text, text) << stream;
      EXPECT_EQ(ollama.finish, "stop");
      EXPECT_TRUE(ollama.calls.empty());
      if (stream) continue;  // what is told cannot be taken back
      EXPECT_TRUE(chat.calls.empty());
      EXPECT_TRUE(messages.calls.empty());
      EXPECT_TRUE(responses.calls.empty());
    }
  }
}

TEST(Dialects, ACallThatWasCutIsNotToBeMade) {
  const Server server({ScriptedModel(
      "cut.gguf", CallOf(R"({"city": "Bern and much more"})"), kHermes)});
  const Dialects dialects(server, 27);
  for (const bool stream : {false, true}) {
    const Said chat = dialects.Chat(stream);
    EXPECT_EQ(chat.finish, "length");
    ASSERT_EQ(chat.calls.size(), 1u);
    EXPECT_TRUE(absl::StartsWith(chat.calls[0], "{\"city\"")) << chat.calls[0];
    const Said messages = dialects.Messages(stream);
    EXPECT_EQ(messages.finish, "max_tokens");
    ASSERT_EQ(messages.calls.size(), 1u);
    if (!stream) {
      EXPECT_EQ(messages.calls[0], "{}");
    }
    EXPECT_EQ(messages.text, "");
    const Said responses = dialects.Responses(stream);
    EXPECT_EQ(responses.finish, "incomplete");
    EXPECT_EQ(responses.statuses, std::vector<std::string>{"incomplete"});
    const Said ollama = dialects.Ollama(stream);
    EXPECT_EQ(ollama.finish, "length");
    EXPECT_TRUE(ollama.calls.empty());
    EXPECT_EQ(ollama.text, "");
  }
  // And a whole one is.
  const Dialects whole(server);
  for (const bool stream : {false, true}) {
    EXPECT_EQ(whole.Chat(stream).finish, "tool_calls");
    EXPECT_EQ(whole.Messages(stream).finish, "tool_use");
    EXPECT_EQ(whole.Responses(stream).statuses,
              std::vector<std::string>{"completed"});
    EXPECT_EQ(whole.Ollama(stream).calls,
              std::vector<std::string>{R"({"city":"Bern and much more"})"});
  }
}

TEST(Dialects, AStopStringInACallEndsIt) {
  const Server server({ScriptedModel(
      "stop.gguf", CallOf(R"({"city": "the lang of it"})"), kHermes)});
  json body = {{"temperature", 0},
               {"stop", {"lang"}},
               {"messages", {{{"role", "user"}, {"content", "q"}}}},
               {"tools", {{{"type", "function"}, {"function", Tool("f")}}}}};
  const auto whole = Post(server, "/v1/chat/completions", body.dump()).json;
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop") << whole;
  EXPECT_FALSE(whole["choices"][0]["message"].contains("tool_calls"));
  body["stream"] = true;
  const Answer streamed = Post(server, "/v1/chat/completions", body.dump());
  EXPECT_FALSE(
      absl::StrContains(streamed.text, R"("finish_reason":"tool_calls")"));
}

// Arguments reach clients as they were written, and templates too.
TEST(Dialects, ArgumentsKeepTheirSpelling) {
  const std::string arguments =
      R"({"n": 123456789012345678901234567890, "p": 1.10, "u": "\ud800"})";
  const Server server(
      {ScriptedModel("spelled.gguf", CallOf(arguments), kHermes)});
  const json body = {
      {"model", "m"},     {"max_tokens", 200},
      {"temperature", 0}, {"options", {{"temperature", 0}}},
      {"stream", false},  {"messages", {{{"role", "user"}, {"content", "q"}}}}};
  json messages = body, ollama = body;
  messages["tools"] = {{{"name", "f"}, {"input_schema", {{"type", "object"}}}}};
  const Answer told = Post(server, "/v1/messages", messages.dump());
  EXPECT_TRUE(absl::StrContains(told.text, arguments)) << told.text;
  ollama["tools"] = {{{"type", "function"}, {"function", Tool("f")}}};
  const Answer object = Post(server, "/api/chat", ollama.dump());
  EXPECT_TRUE(absl::StrContains(
      object.text, R"({"n":123456789012345678901234567890,"p":1.10,)"))
      << object.text;
  // Back again, in each dialect's own form.
  const std::string shown =
      "{\"n\": 123456789012345678901234567890, \"p\": 1.10, "
      "\"u\": \"\uFFFD\"}";
  const std::string text_form =
      R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant",
          "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": )";
  for (const std::string& given : {arguments, json(arguments).dump()}) {
    const Answer prompt = Post(server, "/apply-template",
                               absl::StrCat(text_form, given, "}}]}]}"));
    ASSERT_EQ(prompt.status, 200) << prompt.text;
    EXPECT_TRUE(
        absl::StrContains(prompt.json["prompt"].get<std::string>(), shown))
        << prompt.text;
  }
  const Answer schema = Post(
      server, "/apply-template",
      R"({"messages": [{"role": "user", "content": "q"}], "tools": [{"type":
          "function", "function": {"name": "f", "parameters": {"type": "object",
          "properties": {"n": {"type": "number", "multipleOf": 1.10,
          "maximum": 123456789012345678901234567890}}}}}]})");
  EXPECT_TRUE(absl::StrContains(
      schema.json["prompt"].get<std::string>(),
      "\"multipleOf\": 1.10, \"maximum\": 123456789012345678901234567890"))
      << schema.text;
  const Answer second = Post(
      server, "/v1/messages",
      absl::StrCat(
          R"({"max_tokens": 2, "messages": [{"role": "user", "content": "q"},
              {"role": "assistant", "content": [{"type": "tool_use", "id": "a",
               "name": "f", "input": )",
          arguments,
          R"(}]}, {"role": "user", "content": [{"type": "tool_result",
              "tool_use_id": "a", "content": "r", "is_error": true}]}]})"));
  EXPECT_EQ(second.status, 200) << second.text;
}

// A template that demands short ids gets them, whoever the client is.
TEST(Dialects, IdsOfEveryClientReachEveryTemplate) {
  const Server server({ScriptedModel(
      "nine.gguf", "Hi",
      "{%- for m in messages %}[{{ m.role }}]{{ m.content }}"
      "{%- if m.role == 'tool' and m.tool_call_id | length != 9 %}"
      "{{- raise_exception('nine signs!') }}{%- endif %}"
      "{%- for c in m.tool_calls or [] %}{%- if c.id | length != 9 %}"
      "{{- raise_exception('nine signs!') }}{%- endif %}[TOOL_CALLS]"
      "{{ c.function | tojson }}{% endfor %}{% endfor %}<|go|>")});
  const auto expect = [&](const std::string& path, const std::string& body) {
    const Answer answer = Post(server, path, body);
    EXPECT_EQ(answer.status, 200) << path << " " << answer.text;
  };
  expect("/api/chat", R"({"stream": false, "messages": [
    {"role": "user", "content": "q"}, {"role": "assistant", "content": "",
     "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
    {"role": "tool", "tool_name": "f", "content": "r"}]})");
  expect("/v1/messages", R"({"max_tokens": 2, "messages": [
    {"role": "user", "content": "q"}, {"role": "assistant", "content": [
     {"type": "tool_use", "id": "toolu_01ABC", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result",
     "tool_use_id": "toolu_01ABC", "content": "r"}]}]})");
  expect("/v1/chat/completions", R"({"max_tokens": 2, "messages": [
    {"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [
     {"id": "call_abc", "function": {"name": "f", "arguments": "{"}}]},
    {"role": "tool", "tool_call_id": "call_abc", "content": "r"}]})");
  expect("/v1/responses", R"({"max_output_tokens": 2, "input": [
    {"role": "user", "content": "q"}, {"type": "function_call",
     "call_id": "call_abc", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_abc", "output": "r"}]})");
}

TEST(Dialects, WhatResponsesTellOfTheirItems) {
  const Server server({ScriptedModel(
      "items.gguf",
      absl::StrCat("<think>Hm, well.</think>So: ", CallOf("{\"city\": \"B\"}")),
      kHermes)});
  json tool = Tool("f");
  tool["type"] = "function";
  json body = {{"input", "q"},
               {"temperature", 0},
               {"top_logprobs", 1},
               {"parallel_tool_calls", false},
               {"text", {{"verbosity", "low"}}},
               {"tools", json::array({tool})}};
  const auto whole = Post(server, "/v1/responses", body.dump()).json;
  EXPECT_EQ(whole["parallel_tool_calls"], false);
  EXPECT_EQ(whole["text"]["format"]["type"], "text") << whole["text"];
  EXPECT_EQ(whole["text"]["verbosity"], "low");
  EXPECT_GT(whole["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
  EXPECT_LT(whole["usage"]["output_tokens_details"]["reasoning_tokens"],
            whole["usage"]["output_tokens"]);
  ASSERT_EQ(whole["output"].size(), 3u) << whole;
  const auto text_of = [](const auto& logprobs) {
    std::string text;
    for (const auto& token : logprobs) text += token["token"];
    return text;
  };
  const auto part = whole["output"][1]["content"][0];
  EXPECT_EQ(part["text"], "So:");
  EXPECT_TRUE(absl::StrContains(text_of(part["logprobs"]), "So:"));
  EXPECT_LT(text_of(part["logprobs"]).size(), 7u) << part;
  body["stream"] = true;
  std::string deltas, done;
  for (const auto& event :
       Events(Post(server, "/v1/responses", body.dump()).text)) {
    if (event["type"] == "response.output_text.delta") {
      deltas += text_of(event["logprobs"]);
    }
    if (event["type"] == "response.output_text.done") {
      done = text_of(event["logprobs"]);
    }
  }
  EXPECT_EQ(deltas, text_of(part["logprobs"]));
  EXPECT_EQ(done, deltas);
  // What was asked, and how long it is.
  const std::string id = whole["id"];
  const auto items = Get(server, "/v1/responses/" + id + "/input_items").json;
  ASSERT_EQ(items["data"].size(), 1u) << items;
  EXPECT_EQ(items["data"][0]["content"][0]["text"], "q");
  EXPECT_EQ(items["first_id"], items["data"][0]["id"]);
  body.erase("stream");
  const auto count =
      Post(server, "/v1/responses/input_tokens", body.dump()).json;
  EXPECT_EQ(count["input_tokens"], whole["usage"]["input_tokens"]) << count;
}

// An error names what the client has sent, in the shape that it knows.
TEST(Dialects, ErrorsAreTheDialectsOwn) {
  const Server server({ScriptedModel("errors.gguf", "Hi", kHermes)});
  const auto message = [&](const std::string& path, const std::string& body) {
    const Answer answer = Post(server, path, body);
    EXPECT_EQ(answer.status, 400) << answer.text;
    return answer.json["error"].is_string()
               ? answer.json["error"].get<std::string>()
               : answer.json["error"]["message"].get<std::string>();
  };
  const std::string tool = R"("tools": [{"type": "function", "name": "f"}])";
  const std::string their = R"("max_tokens": 2, "messages": [{"role": "user",
      "content": "q"}], "tools": [{"name": "f", "input_schema": {}}])";
  const struct {
    std::string path, body, name;
  } cases[] = {
      {"/v1/responses",
       R"({"input": "q", "text": {"format": {"type": "json_schema",
           "name": "n"}}})",
       "'text.format.schema'"},
      {"/v1/responses",
       R"({"input": "q", "text": {"format": {"type": "json_schema",
           "name": "n", "strict": true, "schema": {"type": "foo"}}}})",
       "'text.format'"},
      {"/v1/responses",
       absl::StrCat(R"({"input": "q", "tool_choice": {"type": "function",
                        "name": "g"}, )",
                    tool, "}"),
       "'tool_choice.name'"},
      {"/v1/responses",
       absl::StrCat(R"({"input": "q", "tool_choice": {"type": "allowed_tools",
                        "mode": "auto", "tools": [{"type": "function",
                        "name": "g"}]}, )",
                    tool, "}"),
       "'tool_choice.tools[0].name'"},
      {"/v1/responses", R"({"input": "q", "tools": [{"type": "function"}]})",
       "'tools[0].name'"},
      {"/v1/responses", R"({"input": []})", "'input'"},
      {"/v1/messages",
       absl::StrCat(R"({"tool_choice": {"type": "tool", "name": "g"}, )", their,
                    "}"),
       "'tool_choice.name'"},
      {"/v1/messages",
       R"({"max_tokens": 2, "messages": [{"role": "user", "content": "q"}],
           "tools": [{"name": "f", "input_schema": 7}]})",
       "'tools[0].input_schema'"},
      {"/v1/messages",
       R"({"max_tokens": -1, "messages": [{"role": "user", "content": "q"}]})",
       "'max_tokens'"},
      {"/v1/messages",
       R"({"max_tokens": 2, "messages": [{"role": "user", "content": "q"}],
           "output_config": {"format": {"type": "json_schema",
           "schema": 7}}})",
       "'output_config.format.schema'"},
      {"/api/chat",
       R"({"messages": [{"role": "user", "content": "q"}],
           "options": {"num_predict": "x"}})",
       "'options.num_predict'"},
  };
  for (const auto& one : cases) {
    const std::string told = message(one.path, one.body);
    EXPECT_TRUE(absl::StartsWith(told, one.name)) << one.body << "\n" << told;
  }
  httplib::Client client = server.Client();
  const httplib::Headers elsewhere = {{"Origin", "http://evil.example"}};
  for (const auto& [result, status] :
       {std::pair(client.Put("/v1/messages", "{}", "application/json"), 405),
        std::pair(
            client.Post("/v1/messages", elsewhere, "{}", "application/json"),
            403)}) {
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, status);
    EXPECT_EQ(json::parse(result->body)["type"], "error") << result->body;
  }
  const auto put = client.Put("/api/chat", "{}", "application/json");
  EXPECT_EQ(put->status, 405);
  EXPECT_TRUE(json::parse(put->body)["error"].is_string()) << put->body;
}

// A schema, and no more calls than are wanted.
TEST(Dialects, WhatElseAnswersAreToBeLike) {
  const Server server({ScriptedModel(
      "two.gguf",
      absl::StrCat(CallOf("{\"city\": \"A\"}"), CallOf("{\"city\": \"Bern\"}")),
      kHermes)});
  json body = {{"max_tokens", 200},
               {"temperature", 0},
               {"messages", {{{"role", "user"}, {"content", "q"}}}}};
  json formatted = body;
  formatted["output_config"] = {
      {"format", {{"type", "json_schema"}, {"schema", {{"enum", {"seven"}}}}}}};
  const auto text = Post(server, "/v1/messages", formatted.dump()).json;
  EXPECT_EQ(text["content"][0]["text"], "\"seven\"") << text;
  json tool = Tool("f");
  tool["input_schema"] = tool["parameters"];
  tool.erase("parameters");
  body["tools"] = json::array({tool});
  EXPECT_EQ(Post(server, "/v1/messages", body.dump()).json["content"].size(),
            2u);
  body["tool_choice"] = {{"type", "auto"}, {"disable_parallel_tool_use", true}};
  EXPECT_EQ(Post(server, "/v1/messages", body.dump()).json["content"].size(),
            1u);
  body["tools"] = {{{"type", "function"}, {"function", Tool("f")}},
                   {{"type", "function"}, {"function", Tool("g")}}};
  body["tool_choice"] = {
      {"type", "allowed_tools"},
      {"allowed_tools",
       {{"mode", "auto"},
        {"tools", {{{"type", "function"}, {"function", {{"name", "g"}}}}}}}}};
  const auto allowed = Post(server, "/v1/chat/completions", body.dump()).json;
  EXPECT_EQ(allowed["choices"][0]["finish_reason"], "stop") << allowed;
  body.erase("tool_choice");
  body["parallel_tool_calls"] = false;
  const auto one = Post(server, "/v1/chat/completions", body.dump()).json;
  EXPECT_EQ(one["choices"][0]["message"]["tool_calls"].size(), 1u) << one;
}

}  // namespace
}  // namespace weft
