// What is found out of templates, and conversations with tools through them:
// own ones of each kind, and all in the folder WEFT_TEMPLATE_DIR where that is
// given (published ones, say), each an answer, its results, the next answer.
#include "text/answer/customs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "text/answer/reader.h"
#include "text/answer/write_calls.h"
#include "text/json_tree.h"

namespace weft::answer {
namespace {

using json = nlohmann::ordered_json;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::map<std::string, std::string> Templates(const std::string& folder) {
  std::map<std::string, std::string> templates;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    templates[entry.path().lexically_relative(folder).string()] =
        ReadFile(entry.path());
  }
  return templates;
}

json Tools() {
  return json::parse(R"([
    {"type": "function", "function": {"name": "weather", "parameters":
       {"type": "object", "properties": {"city": {"type": "string"},
        "days": {"type": "integer"}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "now"}}])");
}

json CallsOf(int count) {
  json calls = json::array(
      {{{"id", "abcdefghi"},
        {"type", "function"},
        {"function",
         {{"name", "weather"},
          {"arguments", R"({"city": "O'Fallon \"x\"", "days": 7})"}}}}});
  if (count > 1) {
    calls.push_back({{"id", "abcdefghj"},
                     {"type", "function"},
                     {"function", {{"name", "now"}, {"arguments", "{}"}}}});
  }
  return calls;
}

// What the reader makes of an answer, as the next request sends it back.
json MessageOf(const Answer& answer) {
  json message = {{"role", "assistant"},
                  {"content", answer.content.empty() ? json(nullptr)
                                                     : json(answer.content)}};
  if (!answer.reasoning.empty())
    message["reasoning_content"] = answer.reasoning;
  for (const Answer::Call& call : answer.calls) {
    message["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return message;
}

class Loop {
 public:
  Loop(const std::string& name, const ChatTemplate& chat_template)
      : name_(name),
        template_(chat_template),
        customs_(FindCustoms(chat_template,
                             [](absl::string_view) { return false; })) {}

  const TemplateCustoms& customs() const { return customs_; }

  // A question, calls, their results, an answer, a question.
  void Run(int calls, const std::string& said, const std::string& reasoned) {
    json messages = {{{"role", "user"}, {"content", "first question"}}};
    const std::string prompt = Render(messages);
    std::string text;
    const bool opened = std::any_of(
        customs_.forms.reasoning.begin(), customs_.forms.reasoning.end(),
        [&](const ReasoningForm& form) { return Ends(prompt, form.open); });
    // Nothing comes before a call that the prompt has begun.
    const bool begun = !customs_.forms.call->content_name.empty() &&
                       Ends(prompt, customs_.forms.call->call_open);
    if (!reasoned.empty() && !begun && !customs_.forms.harmony()) {
      const ReasoningForm& form = customs_.forms.reasoning.back();
      text = absl::StrCat(opened ? "" : form.open, reasoned, form.close);
      if (opened) {
        for (const ReasoningForm& other : customs_.forms.reasoning) {
          if (Ends(prompt, other.open)) text = reasoned + other.close;
        }
      }
    } else if (opened) {
      for (const ReasoningForm& form : customs_.forms.reasoning) {
        if (Ends(prompt, form.open)) text = form.close;
      }
    }
    // Without a marker a call is the whole answer.
    const CallForm& form = *customs_.forms.call;
    const bool speaks =
        !form.call_open.empty() && form.body != CallBody::kHarmony;
    const std::string content = speaks ? said : "";
    std::string written =
        absl::StrCat(content, WriteCalls(form, CallsOf(calls)));
    if (Ends(prompt, form.call_open) && !form.content_name.empty()) {
      written = content.empty()
                    ? written.substr(form.call_open.size())
                    : absl::StrCat(form.content_name, "\n", written);
    }
    text += written;
    const Answer answer = Read(prompt, text);
    ASSERT_EQ(answer.calls.size(), static_cast<size_t>(calls))
        << name_ << "\n"
        << form.name << "\n"
        << text;
    EXPECT_EQ(json::parse(answer.calls[0].arguments),
              json::parse(R"({"city": "O'Fallon \"x\"", "days": 7})"))
        << name_;
    EXPECT_EQ(answer.content, content) << name_ << "\n" << text;
    messages.push_back(MessageOf(answer));
    for (size_t i = 0; i < answer.calls.size(); ++i) {
      messages.push_back({{"role", "tool"},
                          {"tool_call_id", answer.calls[i].id},
                          {"content", absl::StrCat("found ", i)}});
    }
    Shown(Render(messages), {"first question", "O'Fallon", "found 0"});
    if (calls > 1) Shown(Render(messages), {"found 1"});
    messages.push_back({{"role", "assistant"}, {"content", "last words"}});
    messages.push_back({{"role", "user"}, {"content", "second question"}});
    Shown(Render(messages),
          {"first question", "last words", "second question"});
  }

  // What others have answered, or this model and did not end: ids of any form
  // or none, results in any order, and arguments that are no object, or no
  // JSON.
  void RunForeign() {
    for (const std::string arguments :
         {"{\"city\": \"Zug\"}", "{\"city\": \"Zug\", \"days\": ",
          "{\"city\": \"Zug", "{\"city\": \"Zug\\dir\"}", "{\"c", "[\"Zug\"]",
          "Zug", "{\"city\": \"Zug\", \"days\": 1E400}",
          "{\"city\": \"Zug\\ud800\"}", ""}) {
      for (const auto& [first, second] :
           {std::pair("call_abcdefghijklmnop1234", "toolu_01AbC"),
            std::pair("call_0", "call_1"), std::pair("", "")}) {
        json calls = CallsOf(2);
        json results = json::array();
        int number = 0;
        for (const char* id : {first, second}) {
          json result = {{"role", "tool"},
                         {"content", absl::StrCat("found ", number)}};
          if (*id != '\0') result["tool_call_id"] = id;
          calls[number++]["id"] = id;
          results.push_back(std::move(result));
        }
        calls[0]["function"]["arguments"] = arguments;
        if (*first != '\0') std::swap(results[0], results[1]);
        json messages = {{{"role", "user"}, {"content", "first question"}},
                         {{"role", "assistant"},
                          {"content", nullptr},
                          {"tool_calls", std::move(calls)}}};
        for (json& result : results) messages.push_back(std::move(result));
        const std::string text = Render(messages);
        Shown(text, {"first question", "found 0", "found 1"});
        if (arguments.find("Zug") != std::string::npos) Shown(text, {"Zug"});
      }
    }
  }

 private:
  static bool Ends(const std::string& prompt, const std::string& marker) {
    return absl::EndsWith(absl::StripTrailingAsciiWhitespace(prompt), marker);
  }

  std::string Render(const json& messages) {
    ChatRequest request;
    request.messages = messages;
    request.tools = Tools();
    const auto segments = RenderConversation(template_, customs_, request);
    EXPECT_TRUE(segments.ok()) << name_ << ": " << segments.status() << "\n"
                               << messages;
    return segments.ok() ? JoinSegments(*segments) : "";
  }

  void Shown(const std::string& text, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      EXPECT_NE(text.find(word), std::string::npos)
          << name_ << " does not show " << word << ":\n"
          << text;
    }
  }

  Answer Read(const std::string& prompt, const std::string& text) {
    ReaderOptions options;
    options.tools = Tools();
    options.prompt = prompt;
    AnswerReader reader(customs_.forms, options);
    Answer answer;
    for (const AnswerEvent& event : reader.Push(text)) answer.Add(event);
    for (const AnswerEvent& event : reader.Finish(false)) answer.Add(event);
    return answer;
  }

  const std::string name_;
  const ChatTemplate& template_;
  const TemplateCustoms customs_;
};

void RunAll(const std::string& folder, size_t least) {
  size_t looped = 0;
  for (const auto& [name, source] : Templates(folder)) {
    const auto parsed = ChatTemplate::Parse(source, "<s>", "</s>");
    ASSERT_TRUE(parsed.ok()) << name << ": " << parsed.status();
    Loop loop(name, *parsed);
    const TemplateCustoms& customs = loop.customs();
    std::cout << name << ": "
              << (customs.knows_form ? customs.forms.call->name : "-")
              << (customs.shows_tools ? "" : ", no tools")
              << (customs.shows_calls ? "" : ", no calls")
              << (customs.shows_results ? "" : ", no results")
              << (customs.single_calls ? ", single" : "")
              << (customs.text_arguments ? ", text" : "")
              << (customs.content_with_calls ? "" : ", no content with calls")
              << ", content " << static_cast<int>(customs.no_content)
              << (customs.empty_tools ? ", tools are []" : "") << "\n";
    loop.Run(1, "", "");
    loop.Run(2, "", "");
    loop.Run(2, "Let me look.", "");
    loop.Run(1, "", "Hm.");
    loop.RunForeign();
    ++looped;
  }
  std::cout << looped << " templates\n";
  EXPECT_GE(looped, least);
}

std::string Quoted(const std::string& text) { return json(text).dump(); }

// A small template of models of this form: prints calls with its markers.
std::string TemplateOf(const CallForm& form) {
  const auto print = [](const std::string& text) {
    return text.empty() ? std::string()
                        : absl::StrCat("{{- ", Quoted(text), " }}");
  };
  const std::string name = "{{- call.function.name }}";
  const std::string arguments = "{{- call.function.arguments | tojson }}";
  std::string call;
  switch (form.body) {
    case CallBody::kJson:
      call = form.name_key.empty()
                 ? absl::StrCat(print("{\""), name, print("\": "), arguments,
                                print("}"))
                 : absl::StrCat(print("{\"" + form.name_key + "\": \""), name,
                                print("\", \"" + form.arguments_key + "\": "),
                                arguments, print("}"));
      break;
    case CallBody::kNamed:
      call = absl::StrCat(
          print(form.call_open), form.id_close.empty() ? "" : "{{- call.id }}",
          print(form.id_close), print(form.name_prefix), name,
          form.numbered ? "{{- ':' ~ loop.index0 }}" : "",
          form.id_open.empty() ? "" : print(form.id_open) + "{{- call.id }}",
          print(form.name_close), print("\n"), arguments, print("\n"),
          print(form.call_close));
      break;
    case CallBody::kHarmony:
      call = absl::StrCat(
          "{%- if not loop.first %}", print("<|start|>assistant"),
          "{%- endif %}", print("<|channel|>commentary to=functions."), name,
          print(" <|constrain|>json<|message|>"), arguments, print("<|call|>"));
      break;
    case CallBody::kParameters: {
      const std::string line = form.value_lines ? print("\n") : "";
      std::string attributes;
      if (!form.attributes_close.empty()) {
        attributes = absl::StrCat("{{- ", Quoted(form.written_attributes[0]),
                                  " if value is string else ",
                                  Quoted(form.written_attributes[1]), " }}",
                                  print(form.attributes_close));
      }
      const size_t key = form.value_close.find('\1');
      const std::string close =
          key == std::string::npos
              ? print(form.value_close)
              : absl::StrCat(print(form.value_close.substr(0, key)),
                             "{{- key }}",
                             print(form.value_close.substr(key + 1)));
      const bool more = !form.attributes_close.empty() &&
                        !absl::EndsWith(form.name_close, form.attributes_close);
      call = absl::StrCat(
          print(form.call_open), name, print(form.name_close),
          more ? print(form.attributes_close) : "", print("\n"),
          "{%- for key, value in call.function.arguments.items() %}",
          print(form.parameter_open), "{{- key }}", print(form.key_close),
          attributes, print(form.value_open), line,
          "{{- value if value is string else value | tojson }}", line, close,
          print("\n"), "{%- endfor %}", print(form.call_close));
      break;
    }
    case CallBody::kPython:
      call = absl::StrCat(
          name, print("("),
          "{%- for key, value in call.function.arguments.items() %}",
          "{{- key ~ '=' }}{{- value | tojson }}",
          "{%- if not loop.last %}{{- ', ' }}{%- endif %}{%- endfor %}",
          print(")"));
      break;
    case CallBody::kBraces:
      call = absl::StrCat(
          print(form.call_open + form.name_prefix), name, print("{"),
          "{%- for key, value in call.function.arguments.items() %}",
          "{{- key ~ ':' }}{{- ", Quoted(form.quote), " ~ value ~ ",
          Quoted(form.quote), " if value is string else value | tojson }}",
          "{%- if not loop.last %}{{- ',' }}{%- endif %}{%- endfor %}",
          print("}" + form.call_close));
      break;
  }
  const bool bracketed =
      form.body == CallBody::kJson || form.body == CallBody::kPython;
  const bool each = bracketed && !form.list && !form.call_open.empty();
  const std::string between = !bracketed || each ? "\n"
                              : form.list        ? ", "
                                                 : "; ";
  const bool harmony = form.body == CallBody::kHarmony;
  const bool section = !harmony && !form.call_open.empty();
  return absl::StrCat(
      "{%- if tools %}{{- tools | tojson }}{%- endif %}"
      "{%- for message in messages %}"
      "{{- '<|' ~ message.role ~ '|>' }}"
      "{%- if message.content %}",
      harmony ? "{%- if message.role == 'assistant' %}" +
                    print("<|channel|>final<|message|>") + "{%- endif %}"
              : "",
      "{{- message.content }}{%- endif %}"
      "{%- if message.tool_calls %}",
      section ? print(form.section_open) : "",
      bracketed && form.list ? print(form.call_open + "[") : "",
      "{%- for call in message.tool_calls %}",
      each ? print(form.call_open + "\n") : "", call,
      each ? print("\n" + form.call_close) : "",
      harmony ? ""
              : "{%- if not loop.last %}" + print(between) + "{%- endif %}",
      "{%- endfor %}",
      bracketed && form.list ? print("]" + form.call_close) : "",
      section ? print(form.section_close) : "",
      "{%- endif %}{%- endfor %}"
      "{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}");
}

TEST(TemplateCustoms, EveryFormIsFoundInATemplateThatPrintsIt) {
  for (const CallForm& form : CallForms()) {
    const std::string source = TemplateOf(form);
    const auto parsed = ChatTemplate::Parse(source, "<s>", "</s>");
    ASSERT_TRUE(parsed.ok()) << form.name << ": " << parsed.status();
    Loop loop(form.name, *parsed);
    EXPECT_TRUE(loop.customs().knows_form) << form.name;
    EXPECT_EQ(loop.customs().forms.call->name, form.name) << source;
    EXPECT_TRUE(loop.customs().shows_calls) << form.name;
    loop.Run(1, "", "");
    loop.Run(2, "", "");
    loop.Run(2, "Let me look.", "");
    loop.Run(1, "", "Hm.");
  }
}

// What of a template makes it need another shape of messages.
struct Peculiar {
  const char* what;
  const char* source;
};
constexpr Peculiar kPeculiar[] = {
    {"a text must be there",
     "{%- for m in messages %}[{{ m.role }}]"
     "{%- if '</x>' in m.content %}!{%- endif %}{{- m.content }}"
     "{%- for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}"
     "</tool_call>{%- endfor %}{%- endfor %}"},
    {"only where there is no text are there calls",
     "{%- for m in messages %}[{{ m.role }}]{%- if m.content is none %}"
     "{%- for c in m.tool_calls %}<tool_call>{{ c.function | tojson }}"
     "</tool_call>{%- endfor %}{%- else %}{{- m.content }}{%- endif %}"
     "{%- endfor %}"},
    {"arguments are text",
     "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
     "{%- for c in m.tool_calls or [] %}{{- '<tool_call>{\"name\": \"' ~ "
     "c.function.name ~ '\", \"arguments\": ' + c.function.arguments + "
     "'}</tool_call>' }}{%- endfor %}{%- endfor %}"},
    {"arguments are printed as they are",
     "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
     "{%- for c in m.tool_calls or [] %}<tool_call>{\"name\": "
     "\"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments }}}"
     "</tool_call>{%- endfor %}{%- endfor %}"},
    {"ids have nine signs",
     "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
     "{%- for c in m.tool_calls or [] %}{%- if c.id | length != 9 %}"
     "{{- raise_exception('nine') }}{%- endif %}<tool_call>"
     "{{ c.function | tojson }}</tool_call>{%- endfor %}{%- endfor %}"},
    {"ids are nine letters and digits, of results too",
     "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
     "{%- if m.role == 'tool' and (m.tool_call_id is not defined or "
     "m.tool_call_id | length != 9) %}{{- raise_exception('nine') }}"
     "{%- endif %}{%- for c in m.tool_calls or [] %}"
     "{%- if c.id is not defined or c.id | length != 9 %}"
     "{{- raise_exception('nine') }}{%- endif %}<tool_call>"
     "{{ c.function | tojson }}</tool_call>{%- endfor %}{%- endfor %}"},
    {"arguments are walked along",
     "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
     "{%- for c in m.tool_calls or [] %}<tool_call><function="
     "{{ c.function.name }}>{%- for k, v in c.function.arguments | items %}"
     "<parameter={{ k }}>\n{{ v }}\n</parameter>{%- endfor %}</function>"
     "</tool_call>{%- endfor %}{%- endfor %}"},
    {"one call at a time",
     "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
     "{%- if m.tool_calls %}{%- if m.tool_calls | length > 1 %}"
     "{{- raise_exception('one') }}{%- endif %}<tool_call>"
     "{{ m.tool_calls[0].function | tojson }}</tool_call>{%- endif %}"
     "{%- endfor %}"},
    {"results have the tool's name",
     "{%- for m in messages %}[{{ m.role }}]{%- if m.role == 'tool' %}"
     "{{- m.name + ': ' }}{%- endif %}{{- m.content }}"
     "{%- for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}"
     "</tool_call>{%- endfor %}{%- endfor %}"},
    {"roles alternate, without tools",
     "{%- for m in messages %}{%- if (m.role == 'user') != "
     "(loop.index0 % 2 == 0) %}{{- raise_exception('alternate') }}"
     "{%- endif %}[{{ m.role }}]{{- m.content }}{%- endfor %}"},
    {"tools must be a list",
     "{%- for t in tools %}{{ t.function.name }}{%- endfor %}"
     "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
     "{%- for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}"
     "</tool_call>{%- endfor %}{%- endfor %}"},
    {"tools have descriptions",
     "{%- for t in tools or [] %}{{ t.function.name + ': ' + "
     "t.function.description }}{{ t.function.parameters | tojson }}"
     "{%- for name, p in t.function.parameters.properties.items() %}"
     "{{ name + p.description }}{%- endfor %}{%- endfor %}"
     "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
     "{%- for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}"
     "</tool_call>{%- endfor %}{%- endfor %}"},
};

TEST(TemplateCustoms, EveryTemplateTakesTheAnswersBack) {
  for (const Peculiar& peculiar : kPeculiar) {
    const auto parsed = ChatTemplate::Parse(peculiar.source, "<s>", "</s>");
    ASSERT_TRUE(parsed.ok()) << peculiar.what << ": " << parsed.status();
    Loop loop(peculiar.what, *parsed);
    loop.Run(1, "", "");
    loop.Run(2, "", "");
    loop.Run(2, "Let me look.", "");
    loop.RunForeign();
  }
  RunAll("tests/text/chat_templates", 20);
}

std::string Rendered(const std::string& source, json messages, json tools) {
  const auto parsed = ChatTemplate::Parse(source, "", "");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const TemplateCustoms customs =
      FindCustoms(*parsed, [](absl::string_view) { return false; });
  ChatRequest request;
  request.messages = std::move(messages);
  request.tools = std::move(tools);
  const auto segments = RenderConversation(*parsed, customs, request);
  EXPECT_TRUE(segments.ok()) << segments.status();
  return segments.ok() ? JoinSegments(*segments) : "";
}

constexpr char kWithIds[] =
    "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
    "{%- if m.role == 'tool' %}{{ m.tool_call_id }}{% endif %}"
    "{%- for c in m.tool_calls or [] %}{%- if NINE %}"
    "{{- raise_exception('nine') }}{%- endif %}<tool_call>"
    "{{ c.function | tojson }}</tool_call>{{ c.id }};{%- endfor %}"
    "{%- endfor %}";

// Calls and results stay together; where a template takes any id, they stay.
TEST(TemplateCustoms, IdsAreShortWhereTheyMustBe) {
  json calls = CallsOf(2);
  calls[0]["id"] = "call_0";
  json messages = {
      {{"role", "user"}, {"content", "q"}},
      {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}},
      {{"role", "tool"}, {"tool_call_id", "abcdefghj"}, {"content", "second"}},
      {{"role", "tool"}, {"tool_call_id", "call_0"}, {"content", "first"}}};
  const std::string any = Rendered(
      absl::StrReplaceAll(kWithIds, {{"NINE", "false"}}), messages, nullptr);
  EXPECT_TRUE(absl::StrContains(any, "</tool_call>call_0;")) << any;
  EXPECT_TRUE(absl::StrContains(any, "firstcall_0")) << any;
  const std::string nine =
      Rendered(absl::StrReplaceAll(kWithIds, {{"NINE", "c.id | length != 9"}}),
               messages, nullptr);
  EXPECT_FALSE(absl::StrContains(nine, "call_0")) << nine;
  EXPECT_TRUE(absl::StrContains(nine, "secondabcdefghj")) << nine;
  const size_t first = nine.find("</tool_call>") + 12;
  EXPECT_TRUE(absl::StrContains(nine, "first" + nine.substr(first, 9))) << nine;
}

TEST(TemplateCustoms, NumbersKeepTheirSpelling) {
  const std::string arguments =
      R"({"id": 123456789012345678901234567890, "p": 1.10, "e": 1e2, )"
      R"("x": 1E400})";
  json calls = CallsOf(1);
  calls[0]["function"]["arguments"] = arguments;
  json tools = Tools();
  tools[0]["function"]["parameters"]["maximum"] =
      NumberOf("123456789012345678901234567890");
  tools[0]["function"]["parameters"]["multipleOf"] = NumberOf("1.10");
  const std::string text = Rendered(
      absl::StrCat("{%- if tools %}{{ tools | tojson }}{% endif %}",
                   absl::StrReplaceAll(kWithIds, {{"NINE", "false"}})),
      {{{"role", "user"}, {"content", "q"}},
       {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}}},
      std::move(tools));
  EXPECT_TRUE(absl::StrContains(text, arguments)) << text;
  EXPECT_TRUE(
      absl::StrContains(text, "\"maximum\": 123456789012345678901234567890"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "\"multipleOf\": 1.10")) << text;
}

TEST(TemplateCustoms, AFormOfItsOwnIsFound) {
  const auto parsed = ChatTemplate::Parse(
      "{%- for m in messages %}[{{ m.role }}]{{- m.content }}"
      "{%- for c in m.tool_calls or [] %}<|my_call|>{{ c.function | tojson }}"
      "<|/my_call|>{%- endfor %}{%- endfor %}",
      "", "");
  const Loop loop("own", *parsed);
  EXPECT_TRUE(loop.customs().knows_form);
  EXPECT_EQ(loop.customs().forms.call->call_open, "<|my_call|>");
  EXPECT_EQ(loop.customs().forms.call->call_close, "<|/my_call|>");
  EXPECT_FALSE(loop.customs().shows_tools);
}

TEST(TemplateCustoms, PublishedTemplatesTakeTheAnswersBack) {
  const char* folder = std::getenv("WEFT_TEMPLATE_DIR");
  if (folder == nullptr) GTEST_SKIP() << "WEFT_TEMPLATE_DIR is not set";
  RunAll(folder, 1);
}

}  // namespace
}  // namespace weft::answer
