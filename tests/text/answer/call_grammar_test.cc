// Texts that the grammar of a form lets pass are calls for its reader.
#include "text/answer/call_grammar.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/text/grammar/match.h"
#include "tests/text/grammar/validator.h"
#include "text/answer/reader.h"

namespace weft::answer {
namespace {

using grammar::Term;
using json = nlohmann::ordered_json;

// A random text of a grammar.
class Writer {
 public:
  Writer(const grammar::Syntax& syntax, int seed) : random_(seed) {
    for (const grammar::Rule& rule : syntax.rules) {
      rules_[rule.name] = &rule.term;
    }
  }

  std::string Write() {
    text_.clear();
    Add(*rules_.at("root"), 0);
    return text_;
  }

 private:
  void Add(const Term& term, int depth) {
    switch (term.kind) {
      case Term::kLiteral:
        text_ += term.bytes;
        break;
      case Term::kClass:
        text_ += Sign(term);
        break;
      case Term::kReference:
        Add(*rules_.at(term.name), depth + 1);
        break;
      case Term::kSequence:
        for (const Term& part : term.parts) Add(part, depth + 1);
        break;
      case Term::kChoice: {
        // An automaton is led to its end: its first way.
        const bool leave = depth > 120 || random_() % 3 == 0;
        Add(term.parts[leave ? 0 : random_() % term.parts.size()], depth + 1);
        break;
      }
      case Term::kRepeat: {
        int64_t times = term.least;
        if (depth < 40 && term.most != term.least) times += random_() % 3;
        if (term.most >= 0) times = std::min(times, term.most);
        for (int64_t i = 0; i < times; ++i) Add(term.parts[0], depth + 1);
        break;
      }
      case Term::kStates:
        Walk(*term.states);
        break;
    }
  }

  // At random, then by a shortest way to where it may end.
  void Walk(const std::vector<grammar::CharacterState>& states) {
    constexpr int kFar = 1 << 30;
    std::vector<int> far(states.size(), kFar);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < states.size(); ++i) {
        int way = states[i].accepts ? 0 : kFar;
        for (const int32_t next : states[i].empty) {
          way = std::min(way, far[next] + 1);
        }
        for (const auto& edge : states[i].edges) {
          way = std::min(way, far[edge.to] + 1);
        }
        changed |= way < far[i];
        far[i] = std::min(way, far[i]);
      }
    }
    size_t at = 0;
    for (int steps = random_() % 12;; --steps) {
      const grammar::CharacterState& state = states[at];
      if (state.accepts && steps <= 0) return;
      struct Way {
        int32_t to;
        const grammar::CharacterState::Edge* edge;
      };
      std::vector<Way> ways;
      const auto add = [&](Way way) {
        if (steps > 0 || far[way.to] < far[at]) ways.push_back(way);
      };
      for (const int32_t next : state.empty) add({next, nullptr});
      for (const auto& edge : state.edges) add({edge.to, &edge});
      if (ways.empty()) return;
      const Way way = ways[random_() % ways.size()];
      if (way.edge != nullptr) {
        const auto& range = way.edge->on[random_() % way.edge->on.size()];
        const uint32_t first = std::max<uint32_t>(range.first, ' ');
        const uint32_t last = std::min<uint32_t>(range.last, '~');
        text_ += Utf8(first <= last ? first + random_() % (last - first + 1)
                                    : range.first);
      }
      at = way.to;
    }
  }

  static std::string Utf8(uint32_t sign) {
    std::string bytes;
    if (sign < 0x80) {
      bytes += static_cast<char>(sign);
    } else if (sign < 0x800) {
      bytes += static_cast<char>(0xC0 | sign >> 6);
      bytes += static_cast<char>(0x80 | (sign & 0x3F));
    } else {
      if (sign >= 0x10000) {
        bytes += static_cast<char>(0xF0 | sign >> 18);
        bytes += static_cast<char>(0x80 | (sign >> 12 & 0x3F));
      } else {
        bytes += static_cast<char>(0xE0 | sign >> 12);
      }
      bytes += static_cast<char>(0x80 | (sign >> 6 & 0x3F));
      bytes += static_cast<char>(0x80 | (sign & 0x3F));
    }
    return bytes;
  }

  std::string Sign(const Term& term) {
    for (int tries = 0; tries < 10000; ++tries) {
      const uint32_t sign = ' ' + random_() % 95;
      bool in = false;
      for (const auto& range : term.ranges) {
        in |= range.first <= sign && sign <= range.last;
      }
      if (in != term.negated) return Utf8(sign);
    }
    return Utf8(term.ranges[0].first);
  }

  std::map<std::string, const Term*> rules_;
  std::mt19937 random_;
  std::string text_;
};

json Tools() {
  return json::parse(R"([
    {"type": "function", "function": {"name": "weather", "parameters":
      {"type": "object", "properties": {
         "city": {"type": "string"},
         "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
         "days": {"type": "integer", "minimum": 0, "maximum": 9},
         "exact": {"type": "boolean"},
         "place": {"$ref": "#/properties/places/items"},
         "places": {"type": "array", "items": {"type": "object",
           "properties": {"x": {"type": "integer"}}, "required": ["x"],
           "additionalProperties": false}}},
       "required": ["city", "days"], "additionalProperties": false}}},
    {"type": "function", "function": {"name": "now", "parameters":
      {"type": "object", "properties": {}, "additionalProperties": false}}}])");
}

void CheckArguments(const Answer::Call& call, const std::string& text) {
  const json arguments = json::parse(call.arguments, nullptr, false);
  ASSERT_TRUE(arguments.is_object()) << text << "\n" << call.arguments;
  if (call.name == "now") {
    EXPECT_TRUE(arguments.empty()) << text;
    return;
  }
  ASSERT_EQ(call.name, "weather") << text;
  ASSERT_TRUE(arguments.contains("city")) << text;
  EXPECT_TRUE(arguments["city"].is_string()) << text;
  ASSERT_TRUE(arguments.contains("days")) << text;
  EXPECT_TRUE(arguments["days"].is_number_integer()) << text;
  if (arguments.contains("unit")) {
    EXPECT_TRUE(arguments["unit"] == "celsius" || arguments["unit"] == "kelvin")
        << text;
  }
  if (arguments.contains("exact")) {
    EXPECT_TRUE(arguments["exact"].is_boolean()) << text;
  }
  if (arguments.contains("place")) {
    EXPECT_TRUE(arguments["place"].is_object()) << text;
  }
}

TEST(CallGrammar, WhatItLetsPassIsACallInEveryForm) {
  int calls = 0;
  for (const CallForm& form : CallForms()) {
    for (const bool reasoned : {false, true}) {
      const auto syntax =
          CallGrammar(form, Tools(), reasoned ? "</think>" : "", {});
      ASSERT_TRUE(syntax.ok()) << form.name << ": " << syntax.status();
      for (int seed = 0; seed < 30; ++seed) {
        const std::string text = Writer(*syntax, seed).Write();
        ReaderOptions options;
        options.tools = Tools();
        if (reasoned) options.prompt = "<think>\n";
        AnswerReader reader(NamedForms(form.name), options);
        Answer answer;
        for (const auto& event : reader.Push(text)) answer.Add(event);
        for (const auto& event : reader.Finish(false)) answer.Add(event);
        ASSERT_EQ(answer.calls.size(), 1u) << form.name << ": " << text;
        EXPECT_TRUE(answer.calls[0].whole) << form.name << ": " << text;
        EXPECT_EQ(answer.content, "") << form.name << ": " << text;
        CheckArguments(answer.calls[0], absl::StrCat(form.name, ": ", text));
        ++calls;
      }
    }
  }
  EXPECT_GT(calls, 2000);
}

json Tool(const json& parameters) {
  return json::array(
      {{{"type", "function"},
        {"function", {{"name", "f"}, {"parameters", parameters}}}}});
}

// An object of these properties, all required, and no others.
json Of(const json& properties, const json& more = json::object()) {
  json schema = {{"type", "object"},
                 {"properties", properties},
                 {"required", json::array()},
                 {"additionalProperties", false}};
  for (const auto& entry : properties.items()) {
    schema["required"].push_back(entry.key());
  }
  schema.update(more);
  return schema;
}

TEST(CallGrammar, EveryFormKeepsTheSchema) {
  const std::vector<json> schemas = {
      Of({{"t", {{"type", "string"}, {"pattern", "^[0-9]{3}$"}}}}),
      Of({{"t", {{"type", "string"}, {"pattern", "<"}, {"maxLength", 6}}}}),
      Of({{"t", {{"type", "string"}, {"minLength", 5}, {"maxLength", 8}}}}),
      Of({{"t", {{"type", {"string"}}, {"enum", {"a", "b"}}}}}),
      Of(json::parse(R"({"t": {"anyOf": [{"type": "string", "maxLength": 4},
                                         {"type": "null"}]}})")),
      Of(json::parse(R"({"t": {"type": ["string", "integer"],
                               "maxLength": 3}})")),
      Of(json::parse(R"({"t": {"enum": ["1", 1, "null", null, "x"]}})")),
      Of(json::parse(R"({"t": {"$ref": "#/$defs/e"}})"),
         json::parse(
             R"({"$defs": {"e": {"type": "string", "enum": ["1", "2"]}}})")),
      json::parse(R"({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object",
          "properties": {"x": {"const": 1}}, "required": ["x"],
          "additionalProperties": false}}})"),
      json::parse(R"({"type": "object", "anyOf": [
          {"properties": {"x": {"const": 1}}, "required": ["x"],
           "additionalProperties": false},
          {"properties": {"x": {"type": "string", "pattern": "^[0-9]$"},
                          "y": {"const": 2}},
           "required": ["x", "y"], "additionalProperties": false}]})"),
      json::parse(R"({"allOf": [{"type": "object", "properties":
          {"x": {"const": "one"}}, "required": ["x"]}, {"properties":
          {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}]})"),
      json::parse(R"({"type": "object", "properties": {"a": {"type":
          "integer"}, "b": {"type": "integer"}}, "minProperties": 1})"),
      json::parse(R"({"type": "object", "properties": {}, "required": ["z"],
          "additionalProperties": {"type": "integer", "minimum": 1,
                                   "maximum": 3}})"),
      json::parse(R"({"type": "object", "additionalProperties": {"type":
          "integer"}, "minProperties": 1, "maxProperties": 2})"),
      json::parse(R"({"type": "object", "patternProperties": {"^s": {"type":
          "string", "maxLength": 3}, "^n": {"type": "integer"}},
          "additionalProperties": false, "minProperties": 1})"),
      json::parse(R"({"type": "object", "properties": {"a": {"const": 1},
          "b": {"const": "2"}}, "required": ["a"],
          "dependentRequired": {"a": ["b"]}})"),
      json::parse(R"({"enum": [{"a": "1", "b": [true, "x/y"]}, {}]})"),
      Of(json::parse(R"({"l": {"type": "array", "items": {"type": "string",
          "maxLength": 2}, "minItems": 1, "maxItems": 2}, "o": {"type":
          "object", "properties": {"k": {"type": ["string", "null"]}},
          "required": ["k"], "additionalProperties": false}})"))};
  int kept = 0;
  for (const CallForm& form : CallForms()) {
    for (const json& schema : schemas) {
      const json tools = Tool(schema);
      const auto syntax = CallGrammar(form, tools, "", {}, /*strict=*/true);
      // Names that are not listed are closed by a name in one form.
      if (form.name == "minimax-m3" && !syntax.ok()) continue;
      ASSERT_TRUE(syntax.ok()) << form.name << " " << schema << "\n"
                               << syntax.status();
      const grammar::Validator validate(schema);
      for (int seed = 0; seed < 12; ++seed) {
        const std::string text = Writer(*syntax, seed).Write();
        ReaderOptions options;
        options.tools = tools;
        AnswerReader reader(NamedForms(form.name), options);
        Answer answer;
        for (const auto& event : reader.Push(text)) answer.Add(event);
        for (const auto& event : reader.Finish(false)) answer.Add(event);
        ASSERT_EQ(answer.calls.size(), 1u) << form.name << " " << text;
        const json arguments =
            json::parse(answer.calls[0].arguments, nullptr, false);
        ASSERT_TRUE(!arguments.is_discarded() && validate(arguments))
            << form.name << " " << schema << "\n"
            << text << "\n"
            << answer.calls[0].arguments;
        ++kept;
      }
    }
  }
  EXPECT_GT(kept, 6000);
}

TEST(CallGrammar, TextsBetweenMarkersAreTheSchemasStrings) {
  struct Case {
    const char *form, *before, *behind;
  };
  const std::vector<Case> cases = {
      {"gemma4", "<|tool_call>call:f{t:<|\"|>", "<|\"|>}<tool_call|>"},
      {"glm4", "<tool_call>f\n<arg_key>t</arg_key>\n<arg_value>",
       "</arg_value>\n</tool_call>"},
      {"minimax-m2",
       "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"t\">",
       "</parameter>\n</invoke>\n</minimax:tool_call>"},
      {"qwen3-coder", "<tool_call>\n<function=f>\n<parameter=t>\n",
       "\n</parameter>\n</function>\n</tool_call>"},
      {"lfm2", "<|tool_call_start|>[f(t=\"", "\")]<|tool_call_end|>"}};
  struct Strings {
    json schema;
    std::vector<std::string> yes, no;
  };
  const std::vector<Strings> strings = {
      {{{"type", "string"}, {"pattern", "^[0-9]{3}$"}},
       {"123"},
       {"hello", "12", "1234", ""}},
      {{{"type", "string"}, {"minLength", 2}, {"maxLength", 3}},
       {"ab", "<a>", "\u00e9\u00e9"},
       {"a", "abcd"}},
      {{{"type", "string"}, {"format", "date"}},
       {"2024-02-29"},
       {"2023-02-29", "x"}},
      {{{"type", {"string"}}, {"enum", {"a", "b"}}},
       {"a", "b"},
       {"c", "\"a\""}},
      {json::parse(R"({"anyOf": [{"type": "string", "maxLength": 5},
                                 {"type": "null"}]})"),
       {"a", "90210"},
       {"abcdef"}},
      {{{"type", "string"}},
       {"", "a b", "</x>", "null"},
       {"a</parameter>b</arg_value>c<|\"|>\"d"}}};
  for (const Case& c : cases) {
    for (const Strings& s : strings) {
      grammar::Matcher matches(CallGrammar(*NamedForms(c.form).call,
                                           Tool(Of({{"t", s.schema}})), "", {},
                                           /*strict=*/true));
      for (const std::string& text : s.yes) {
        EXPECT_TRUE(matches(absl::StrCat(c.before, text, c.behind)))
            << c.form << " " << s.schema << " " << text;
      }
      for (const std::string& text : s.no) {
        EXPECT_FALSE(matches(absl::StrCat(c.before, text, c.behind)))
            << c.form << " " << s.schema << " " << text;
      }
    }
  }
}

TEST(CallGrammar, LongTextsAreCountedBetweenMarkers) {
  for (const int most : {1000, 4000, 9000}) {
    grammar::Matcher matches(CallGrammar(
        *NamedForms("glm4").call,
        Tool(Of({{"t", {{"type", "string"}, {"maxLength", most}}}})), "", {},
        true));
    const std::string before = "<tool_call>f<arg_key>t</arg_key><arg_value>";
    const std::string behind = "</arg_value></tool_call>";
    EXPECT_TRUE(matches(before + std::string(most, '<') + behind)) << most;
    EXPECT_FALSE(matches(before + std::string(most + 1, 'a') + behind)) << most;
    EXPECT_FALSE(matches(before + behind + behind)) << most;
  }
}

TEST(CallGrammar, WhatAFormCannotSayIsToldOrRefused) {
  const json schema = Of({{"a b", {{"type", "integer"}}}});
  const CallForm form = *NamedForms("lfm2").call;
  const auto strict = CallGrammar(form, Tool(schema), "", {}, true);
  EXPECT_NE(std::string(strict.status().message()).find("'a b' is required"),
            std::string::npos)
      << strict.status();
  const auto told = CallGrammar(form, Tool(schema), "", {}, false);
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_EQ(told->dropped.size(), 1u);
  EXPECT_NE(told->dropped[0].find("'a b' is required"), std::string::npos);
  // Where it can be said, it is.
  grammar::Matcher matches(
      CallGrammar(*NamedForms("gemma4").call, Tool(schema), "", {}, true));
  EXPECT_TRUE(matches("<|tool_call>call:f{\"a b\":1}<tool_call|>"));
  // Nothing of it can be written: not silently something else.
  const auto never = CallGrammar(*NamedForms("glm4").call,
                                 Tool(Of({{"t", {{"const", "</arg_value>"}}}})),
                                 "", {}, false);
  EXPECT_FALSE(never.ok());
}

// What an answer is read as, of tools.
Answer ReadAnswer(const CallForm& form, const json& tools,
                  const std::string& prompt, const std::string& text) {
  ReaderOptions options;
  options.tools = tools;
  options.prompt = prompt;
  AnswerReader reader(NamedForms(form.name), options);
  Answer answer;
  for (const auto& event : reader.Push(text)) answer.Add(event);
  for (const auto& event : reader.Finish(false)) answer.Add(event);
  return answer;
}

json StrictTool() {
  json tools = Tool(Of({{"x", {{"type", "integer"}}},
                        {"t", {{"type", "string"}, {"pattern", "^[a-c]+$"}}}}));
  tools[0]["function"]["strict"] = true;
  return tools;
}

TEST(CallGrammar, ACallThatNeedNotComeFitsItsSchema) {
  const json tools = StrictTool();
  const grammar::Validator validate(tools[0]["function"]["parameters"]);
  std::map<std::string, int> calls;
  int texts = 0;
  for (const CallForm& form : CallForms()) {
    for (const bool reasoned : {false, true}) {
      const auto syntax = CallGrammar(form, OrText(tools),
                                      reasoned ? "</think>" : "", {}, true);
      ASSERT_TRUE(syntax.ok()) << form.name << ": " << syntax.status();
      ASSERT_TRUE(grammar::Compiled::Create(*syntax).ok())
          << form.name << grammar::Compiled::Create(*syntax).status();
      for (int seed = 0; seed < 60; ++seed) {
        const std::string text = Writer(*syntax, seed).Write();
        const Answer answer =
            ReadAnswer(form, tools, reasoned ? "<think>\n" : "", text);
        if (answer.calls.empty()) ++texts;
        for (const Answer::Call& call : answer.calls) {
          ASSERT_TRUE(call.whole) << form.name << ": " << text;
          const json arguments = json::parse(call.arguments, nullptr, false);
          ASSERT_TRUE(!arguments.is_discarded() && validate(arguments))
              << form.name << ": " << text << "\n"
              << call.arguments;
          ++calls[form.name];
        }
      }
    }
  }
  for (const CallForm& form : CallForms()) {
    EXPECT_GT(calls[form.name], 10) << form.name;
  }
  EXPECT_GT(texts, 500);
}

TEST(CallGrammar, WhatBeginsAsACallIsOne) {
  struct Case {
    const char* form;
    std::vector<std::string> yes, no;
  };
  const std::string hermes =
      R"(<tool_call>{"name": "f", "arguments": {"x": 1, "t": "a"}}</tool_call>)";
  const std::string wrong =
      R"(<tool_call>{"name": "f", "arguments": {"x": "no", "t": "a"}})"
      "</tool_call>";
  const std::string qwen =
      "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n"
      "<parameter=t>\nabc\n</parameter>\n</function>\n</tool_call>";
  const std::vector<Case> cases = {
      {"hermes",
       {"", "Hello, <b>you</b>", "a <tool", hermes, "First. " + hermes + " b",
        hermes + "\n" + hermes, "<think>no " + wrong + "</think>\n" + hermes,
        "<think>without an end"},
       {wrong, "a " + wrong, hermes + wrong, "<tool_call>", "<tool_call>x",
        "<think>a</think>" + wrong, "x<think>" + wrong + "</think>"}},
      {"qwen3-coder",
       {"text", qwen, "a\n" + qwen + "\n" + qwen,
        "<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=t>\na\n"
        "</parameter>\n</function>"},
       {"<function=f>", "<tool_call>x",
        "<tool_call>\n<function=f>\n<parameter=x>\nno\n</parameter>"
        "\n<parameter=t>\nabc\n</parameter>\n</function>\n</tool_call>"}},
      {"pythonic",
       {"[1] is a note", "f(x) is", "[f(x=1, t=\"a\")]", "[link](a)",
        "[f(x=1, t=\"a\"), f(x=2, t=\"b\")]"},
       {"[f(x=1)]", "[f(x=\"no\", t=\"a\")]", " [ f(x=1, t=\"d\")]",
        "[f(x=1, t=\"a\"), f(x=2)]", "[f(x=1, t=\"a\")]\nf(x=2)"}},
      {"mistral",
       {"[1]",
        R"([TOOL_CALLS][{"name": "f", "arguments": {"x": 1, "t": "a"}}] x)"},
       {R"([TOOL_CALLS][{"name": "f", "arguments": {"x": 1, "t": "d"}}])",
        R"([TOOL_CALLS][{"name": "f", "arguments": {"x": 1, "t": "a"}}],)"
        R"({"name": "f", "arguments": {}})"}},
      {"llama3",
       {"{x}", "a {\"name\": 1}",
        R"({"name": "f", "parameters": {"x": 1, "t": "a"}})"},
       {R"({"name": "f", "parameters": {"x": "no", "t": "a"}})",
        R"( {"parameters": {}, "name": "f"})"}},
      {"gemma4",
       {"{x:1}", "<|tool_call>call:f{x:1,t:<|\"|>a<|\"|>}<tool_call|>"},
       {"<|tool_call>call:f{x:1,t:<|\"|>d<|\"|>}<tool_call|>"}},
      {"harmony",
       {"<|channel|>final<|message|>Hello",
        "<|channel|>analysis<|message|>to= {}<|end|><|start|>assistant"
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
        R"({"x": 1, "t": "a"})"},
       {"<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
        R"({"x": "no", "t": "a"})",
        "<|channel|>commentary to=functions.f<|message|>x"}}};
  for (const Case& c : cases) {
    grammar::Matcher matches(CallGrammar(*NamedForms(c.form).call,
                                         OrText(StrictTool()), "", {}, true));
    for (const std::string& text : c.yes) {
      EXPECT_TRUE(matches(text)) << c.form << ": " << text;
    }
    for (const std::string& text : c.no) {
      EXPECT_FALSE(matches(text)) << c.form << ": " << text;
    }
  }
  // Reasoning that the prompt has opened.
  grammar::Matcher matches(CallGrammar(
      *NamedForms("hermes").call, OrText(StrictTool()), "</think>", {}, true));
  EXPECT_TRUE(matches("so " + wrong + "</think>" + hermes));
  EXPECT_TRUE(matches("so " + wrong));
  EXPECT_FALSE(matches("so</think>" + wrong));
}

TEST(CallGrammar, BesideTextOnlyStrictToolsAreStrict) {
  json tools = StrictTool();
  tools.push_back(Tool({{"type", "object"}, {"unknown", 1}})[0]);
  tools[1]["function"]["name"] = "g";
  const CallForm form = *NamedForms("hermes").call;
  const auto made = CallGrammar(form, OrText(tools), "", {}, true);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->dropped.size(), 1u);
  tools[1]["function"]["strict"] = true;
  EXPECT_FALSE(CallGrammar(form, OrText(tools), "", {}, true).ok());
  EXPECT_TRUE(AnyStrict(tools));
  EXPECT_FALSE(AnyStrict(Tool({{"type", "object"}})));
  EXPECT_FALSE(AnyStrict(json()));
}

TEST(CallGrammar, ControlTokensOfReasoningMayStandInText) {
  const auto syntax =
      CallGrammar(*NamedForms("hermes").call, OrText(StrictTool()), "",
                  {"<tool_call>", "</tool_call>", "[THINK]", "[/THINK]"}, true);
  ASSERT_TRUE(syntax.ok()) << syntax.status();
  grammar::Matcher matches(syntax);
  EXPECT_TRUE(matches("\xff[THINK]a <tool_call> b\xff[/THINK]c"));
  EXPECT_FALSE(matches("a <tool_call> b"));
  EXPECT_FALSE(matches("a \xff<tool_call>b"));
  EXPECT_TRUE(
      matches("a \xff<tool_call>{\"name\":\"f\",\"arguments\":"
              "{\"x\":1,\"t\":\"a\"}}\xff</tool_call>"));
}

TEST(CallGrammar, MarkersAreTheirControlTokens) {
  const auto syntax = CallGrammar(*NamedForms("qwen3-coder").call, Tools(), "",
                                  {"<tool_call>", "</parameter>"});
  ASSERT_TRUE(syntax.ok());
  const std::string text = Writer(*syntax, 3).Write();
  EXPECT_EQ(text.find("\xff<tool_call>"), 0u) << text;
  EXPECT_EQ(text.find("\xff<function="), std::string::npos) << text;
  const size_t close = text.find("</parameter>");
  if (close != std::string::npos) {
    EXPECT_EQ(text[close - 1], '\xff') << text;
  }
}

}  // namespace
}  // namespace weft::answer
