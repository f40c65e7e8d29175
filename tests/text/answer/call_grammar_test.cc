// Texts that the grammar of a form lets pass are calls for its reader.
#include "text/answer/call_grammar.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
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

  // A shortest way from the first state to one that accepts.
  void Walk(const std::vector<grammar::CharacterState>& states) {
    std::vector<std::string> ways(states.size());
    std::vector<bool> known(states.size());
    std::vector<int32_t> reached;
    const auto reach = [&](int32_t state, std::string way) {
      if (known[state]) return;
      known[state] = true;
      ways[state] = std::move(way);
      reached.push_back(state);
    };
    reach(0, "");
    for (size_t i = 0; i < reached.size(); ++i) {
      const grammar::CharacterState& state = states[reached[i]];
      const std::string way = ways[reached[i]];
      if (state.accepts) {
        text_ += way;
        return;
      }
      for (const int32_t next : state.empty) reach(next, way);
      for (const auto& edge : state.edges) {
        // The first character that can be seen.
        for (const auto& range : edge.on) {
          const uint32_t sign = std::max<uint32_t>(range.first, ' ');
          if (sign > range.last) continue;
          reach(edge.to, way + Utf8(sign));
          break;
        }
      }
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
      bytes += static_cast<char>(0xE0 | sign >> 12);
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
