// What the server makes of what a model writes: reasoning, calls, second turns.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/scripted_model.h"
#include "tests/e2e/server.h"
#include "tests/e2e/weft.h"

namespace weft {
namespace {

using json = nlohmann::json;

constexpr char kChat[] = "/v1/chat/completions";
constexpr char kTools[] = R"("tools": [
  {"type": "function", "function": {"name": "weather", "parameters":
    {"type": "object", "properties": {"city": {"enum": ["Bern"]}},
     "required": ["city"], "additionalProperties": false}}},
  {"type": "function", "function": {"name": "now"}}])";
constexpr char kHermes[] =
    "{%- if tools %}{{ tools | tojson }}{% endif %}"
    "{%- for m in messages %}[{{ m.role }}]"
    "{%- if '</x>' in m.content %}!{% endif %}{{ m.content }}"
    "{%- if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{%- endif %}{%- for c in m.tool_calls or [] %}<tool_call>"
    "{{ c.function | tojson }}</tool_call>{% endfor %}{% endfor %}<|go|>";

std::string Body(const std::string& rest, const std::string& messages = "") {
  return absl::StrCat(R"({"temperature": 0, "messages": [)",
                      R"({"role": "user", "content": "q"})",
                      messages.empty() ? "" : ",", messages, "]", ", ", rest,
                      "}");
}

TEST(Answers, AnAgentsTurnsGoRound) {
  const Server server({ScriptedModel(
      "hermes.gguf",
      "<think>Hm.</think>\n<tool_call>{\"name\": \"weather\", \"arguments\": "
      "{\"city\": \"Bern\", \"n\": 1.10}}</tool_call>",
      kHermes)});
  const Answer first = Post(server, kChat, Body(kTools));
  ASSERT_EQ(first.status, 200) << first.text;
  const json choice = first.json["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  json message = choice["message"];
  EXPECT_EQ(message["content"], nullptr);
  EXPECT_EQ(message["reasoning_content"], "Hm.");
  ASSERT_EQ(message["tool_calls"].size(), 1u) << first.text;
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"],
            R"({"city": "Bern", "n": 1.10})");
  const json result = {{"role", "tool"},
                       {"tool_call_id", message["tool_calls"][0]["id"]},
                       {"content", "3 degrees"}};
  const std::string turn = absl::StrCat(message.dump(), ",", result.dump());
  const Answer second = Post(server, kChat, Body(kTools, turn));
  EXPECT_EQ(second.status, 200) << second.text;
  const Answer prompt = Post(server, "/apply-template", Body(kTools, turn));
  const std::string text = prompt.json["prompt"];
  EXPECT_TRUE(absl::StrContains(text, "<think>Hm.</think>")) << text;
  EXPECT_TRUE(absl::StrContains(text, "[tool]3 degrees")) << text;
  // Reasoning that is asked for as content, and a call that is cut.
  const Answer whole =
      Post(server, kChat,
           Body(absl::StrCat(R"("reasoning_format": "none", )", kTools)));
  EXPECT_EQ(whole.json["choices"][0]["message"]["content"],
            "<think>Hm.</think>")
      << whole.text;
  const Answer cut =
      Post(server, kChat, Body(absl::StrCat(R"("max_tokens": 36, )", kTools)));
  const json partial = cut.json["choices"][0];
  EXPECT_EQ(partial["finish_reason"], "length");
  EXPECT_EQ(partial["message"]["content"], nullptr) << cut.text;
  ASSERT_EQ(partial["message"]["tool_calls"].size(), 1u) << cut.text;
}

// However few tokens there are: it is known what is called.
TEST(Answers, AForcedCallThatIsCutIsAPartialCall) {
  const Server server({});  // one that nobody taught to call
  const std::string forced = absl::StrCat(
      R"("tool_choice": {"type": "function", "function": {"name": "weather"}}, )",
      kTools);
  for (const int tokens : {1, 3, 8}) {
    for (const bool stream : {false, true}) {
      const Answer cut =
          Post(server, kChat,
               Body(absl::StrCat(R"("max_tokens": )", tokens, R"(, "stream": )",
                                 stream ? "true" : "false", ", ", forced)));
      ASSERT_EQ(cut.status, 200) << cut.text;
      std::string name, content, finish;
      const auto add = [&](const json& message) {
        if (message.contains("content") && message["content"].is_string()) {
          content += message["content"].get<std::string>();
        }
        if (!message.contains("tool_calls")) return;
        name += message["tool_calls"][0]["function"].value("name", "");
      };
      if (stream) {
        for (const json& event : Events(cut.text)) {
          add(event["choices"][0]["delta"]);
          if (event["choices"][0]["finish_reason"].is_string()) {
            finish = event["choices"][0]["finish_reason"];
          }
        }
      } else {
        add(cut.json["choices"][0]["message"]);
        finish = cut.json["choices"][0]["finish_reason"];
      }
      EXPECT_EQ(name, "weather") << cut.text;
      EXPECT_EQ(content, "") << cut.text;
      EXPECT_EQ(finish, "length") << cut.text;
    }
  }
}

TEST(Answers, StreamsTellCallsInParts) {
  const Server server({ScriptedModel(
      "stream.gguf",
      "<think>Hm.</think>Look:\n<tool_call>{\"name\": \"weather\", "
      "\"arguments\": {\"city\": \"Bern\"}}</tool_call>",
      kHermes)});
  const Answer streamed =
      Post(server, kChat, Body(absl::StrCat(R"("stream": true, )", kTools)));
  std::string reasoning, content, arguments;
  int parts = 0;
  for (const json& event : Events(streamed.text)) {
    const json& delta = event["choices"][0]["delta"];
    if (delta.contains("reasoning_content")) {
      reasoning += delta["reasoning_content"].get<std::string>();
    }
    if (delta.contains("content")) {
      content += delta["content"].get<std::string>();
    }
    if (!delta.contains("tool_calls")) continue;
    const json& call = delta["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    arguments += call["function"]["arguments"].get<std::string>();
    ++parts;
  }
  EXPECT_EQ(reasoning, "Hm.");
  EXPECT_EQ(content, "Look:");
  EXPECT_EQ(arguments, R"({"city": "Bern"})");
  EXPECT_GT(parts, 3);
}

// What is reasoning_content of chats, each dialect has in a form of its own.
TEST(Answers, ReasoningIsApartInEveryDialect) {
  const Server server(
      {ScriptedModel("dialects.gguf", "<think>Hm.</think>Yes.", kHermes)});
  const std::string question =
      R"("model": "m", "messages": [{"role": "user", "content": "q"}])";
  const auto ask = [&](const std::string& path, const std::string& body) {
    const Answer answer = Post(server, path, absl::StrCat("{", body, "}"));
    EXPECT_EQ(answer.status, 200) << path << " " << answer.text;
    return answer;
  };
  const std::string messages = absl::StrCat(R"("max_tokens": 64, )", question);
  const json blocks = ask("/v1/messages", messages).json["content"];
  ASSERT_EQ(blocks.size(), 2u) << blocks;
  EXPECT_EQ(blocks[0]["type"], "thinking");
  EXPECT_EQ(blocks[0]["thinking"], "Hm.");
  EXPECT_EQ(blocks[1]["text"], "Yes.");
  const json items = ask("/v1/responses", R"("input": "q")").json["output"];
  ASSERT_EQ(items.size(), 2u) << items;
  EXPECT_EQ(items[0]["type"], "reasoning");
  EXPECT_EQ(items[0]["content"][0]["text"], "Hm.");
  EXPECT_EQ(items[1]["content"][0]["text"], "Yes.");
  const json said =
      ask("/api/chat", absl::StrCat(R"("stream": false, )", question))
          .json["message"];
  EXPECT_EQ(said["thinking"], "Hm.") << said;
  EXPECT_EQ(said["content"], "Yes.");
  // And while it comes.
  std::string thinking, reasoning;
  for (const json& event :
       Events(ask("/v1/messages", absl::StrCat(R"("stream": true, )", messages))
                  .text)) {
    if (event["type"] == "content_block_delta") {
      thinking += event["delta"].value("thinking", "");
    }
  }
  for (const json& event :
       Events(ask("/v1/responses", R"("stream": true, "input": "q")").text)) {
    if (event["type"] == "response.reasoning_text.delta") {
      reasoning += event["delta"].get<std::string>();
    }
  }
  EXPECT_EQ(thinking, "Hm.");
  EXPECT_EQ(reasoning, "Hm.");
}

TEST(Answers, ControlTokensMarkThem) {
  const std::vector<std::string> control = {"<|channel|>", "<|start|>",
                                            "<|message|>", "<|end|>",
                                            "<|call|>",    "<|return|>"};
  const Server server({ScriptedModel(
      "harmony.gguf",
      "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>"
      "commentary to=functions.weather json<|message|>{\"city\": \"Bern\"}",
      "{%- for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}"
      "{%- for c in m.tool_calls or [] %}<|channel|>commentary to=functions."
      "{{ c.function.name }} json<|message|>{{ c.function.arguments | tojson }}"
      "<|call|>{% endfor %}<|end|>{% endfor %}<|start|>assistant<|go|>",
      control)});
  const Answer answer = Post(server, kChat, Body(kTools));
  ASSERT_EQ(answer.status, 200) << answer.text;
  const json message = answer.json["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "Hm.") << answer.text;
  EXPECT_EQ(message["content"], nullptr);
  ASSERT_TRUE(message.contains("tool_calls")) << answer.text;
  EXPECT_EQ(message["tool_calls"][0]["function"]["name"], "weather");
  // Those that are no markers print nothing.
  EXPECT_FALSE(absl::StrContains(answer.text, "<|end|>"));
}

TEST(Answers, ForcedCallsHaveTheFormOfTheTemplate) {
  const Server server({ScriptedModel(
      "forced.gguf", "[TOOL_CALLS]",
      "{%- for m in messages %}[{{ m.role }}]{{ m.content }}"
      "{%- for c in m.tool_calls or [] %}[TOOL_CALLS]{{ c.function.name }}"
      "[ARGS]{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}<|go|>",
      {"[TOOL_CALLS]", "[ARGS]"})});
  const Answer answer =
      Post(server, kChat,
           Body(absl::StrCat(R"("tool_choice": "required", "logprobs": true,)",
                             R"("max_tokens": 400, )", kTools)));
  ASSERT_EQ(answer.status, 200) << answer.text;
  const json choice = answer.json["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls") << answer.text;
  // The marker is the control token, not its letters.
  EXPECT_EQ(choice["logprobs"]["content"][0]["token"], "[TOOL_CALLS]");
}

// Of a template whose only words are those of its tools.
std::string Template(const std::string& call) {
  return absl::StrCat(
      "{% for m in messages %}{{ m.content }}{% endfor %}"
      "{% if tools %}",
      call, "{% endif %}<|go|>");
}

TEST(Answers, ForcedCallsKeepTheSchemaInEveryForm) {
  struct Form {
    const char *call, *close;
  };
  int i = 0;
  for (const Form& form :
       {Form{"<|tool_call>call:f{x:<|\"|>a<|\"|>}<tool_call|>", "<|\"|>"},
        Form{"<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n"
             "</tool_call>",
             "</arg_value>"},
        Form{"<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n"
             "</function>\n</tool_call>",
             "\n</parameter>"}}) {
    const Server server({ScriptedModel(absl::StrCat("kept", i++, ".gguf"),
                                       absl::StrCat("hello", form.close),
                                       Template(form.call))});
    const Answer answer = Post(server, kChat, Body(R"("max_tokens": 200,
        "tool_choice": "required", "tools": [{"type": "function", "function":
        {"name": "f", "strict": true, "parameters": {"type": "object",
        "properties": {"t": {"type": "string", "pattern": "^[0-9]{3}$"}},
        "required": ["t"], "additionalProperties": false}}}])"));
    ASSERT_EQ(answer.status, 200) << answer.text;
    const json call = answer.json["choices"][0]["message"]["tool_calls"][0];
    const json arguments = json::parse(
        call["function"]["arguments"].get<std::string>(), nullptr, false);
    ASSERT_TRUE(arguments.is_object()) << answer.text;
    const std::string text = arguments.value("t", "");
    EXPECT_EQ(text.size(), 3u) << answer.text;
    EXPECT_EQ(text.find_first_not_of("0123456789"), std::string::npos) << text;
  }
}

TEST(Answers, StrictCallsFitTheirSchemaThoughTheyNeedNotCome) {
  const Server server({ScriptedModel(
      "strict.gguf",
      "Look. <tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"no\"}}"
      "</tool_call>",
      kHermes)});
  const auto ask = [&](const std::string& strict, const std::string& schema) {
    return Post(server, kChat,
                Body(absl::StrCat(R"("max_tokens": 100, "tools": [
                     {"type": "function", "function": {"name": "f", )",
                                  strict, R"("parameters": {"type": "object",
                     "properties": {"x": )",
                                  schema, R"(}, "required": ["x"],
                     "additionalProperties": false}}}])")));
  };
  const std::string whole =
      R"({"type": "integer", "minimum": 1, "maximum": 3})";
  const auto arguments = [](const Answer& answer) -> std::string {
    const json message = answer.json["choices"][0]["message"];
    return message.contains("tool_calls")
               ? message["tool_calls"][0]["function"]["arguments"]
               : "";
  };
  const Answer free = ask("", whole);
  ASSERT_EQ(free.status, 200) << free.text;
  EXPECT_EQ(arguments(free), R"({"x": "no"})") << free.text;
  const Answer strict = ask(R"("strict": true, )", whole);
  ASSERT_EQ(strict.status, 200) << strict.text;
  EXPECT_EQ(
      strict.json["choices"][0]["message"]["content"].get<std::string>().substr(
          0, 5),
      "Look.")
      << strict.text;
  const json kept = json::parse(arguments(strict), nullptr, false);
  ASSERT_TRUE(kept.is_object()) << strict.text;
  EXPECT_TRUE(kept["x"].is_number_integer()) << strict.text;
  // What cannot be kept is refused, as for calls that must come.
  const Answer refused = ask(R"("strict": true, )", R"({"unheard": 1})");
  EXPECT_EQ(refused.status, 400) << refused.text;
  EXPECT_EQ(refused.json["error"]["param"], "tools") << refused.text;
}

TEST(Answers, ATemplateThatShowsNoToolsIsWarnedOf) {
  const Server server(
      {ScriptedModel("none.gguf", "Hi", "{{ messages[0].content }}<|go|>")});
  EXPECT_TRUE(absl::StrContains(server.Log(), "it shows no tools"))
      << server.Log();
}

TEST(Answers, TheTerminalFoldsReasoning) {
  const std::string model =
      ScriptedModel("fold.gguf", "<think>Hm, well.</think>\nYes.",
                    "{{ messages[0].content }}<|go|>");
  RunOptions options;
  options.input = "q\n/reasoning\n";
  const RunResult result = Weft({"chat", model, "--temperature", "0"}, options);
  EXPECT_EQ(result.out, "Yes.\n") << result.err;
  EXPECT_TRUE(absl::StrContains(result.err, "/reasoning shows")) << result.err;
  EXPECT_TRUE(absl::StrContains(result.err, "Hm, well.")) << result.err;
}

}  // namespace
}  // namespace weft
