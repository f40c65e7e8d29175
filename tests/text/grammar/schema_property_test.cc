// Random schemas against random values and against texts that their grammars
// make: what a grammar allows is valid (validator.h), unless it said what it
// drops. WEFT_SCHEMA_ROUNDS: how many schemas.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/text/grammar/match.h"
#include "tests/text/grammar/validator.h"
#include "text/grammar/json_schema.h"

namespace weft::grammar {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  Json Schema() {
    Json schema = One(3);
    if (!schema.is_object()) return schema;
    for (int i = 0; i < 2; ++i) {
      schema["$defs"][absl::StrCat("d", i)] = One(2);
    }
    return schema;
  }

  // About as often valid as not, for schemas of this kind.
  Json Value(int depth) {
    switch (Up(depth > 0 ? 8 : 5)) {
      case 0:
        return nullptr;
      case 1:
        return Up(2) == 0;
      case 2:
        return Up(12) - 4;
      case 3:
        return (Up(40) - 15) / 4.0;
      case 4:
      case 5:
        return Word();
      case 6: {
        Json list = Json::array();
        for (int n = Up(4); n > 0; --n) list.push_back(Value(depth - 1));
        return list;
      }
      default: {
        Json object = Json::object();
        // In the order in which schemas have them.
        for (const char* name : {"a", "b", "c", "ab", "zz"}) {
          if (Up(2) == 0) object[name] = Value(depth - 1);
        }
        return object;
      }
    }
  }

  int Up(int limit) { return static_cast<int>(random_() % limit); }

 private:
  std::string Word() {
    static const char* const kWords[] = {"",   "a",  "b",   "ab", "ba",
                                         "aa", "a1", "abc", "1",  "zz"};
    return kWords[Up(10)];
  }
  std::string Pattern() {
    static const char* const kPatterns[] = {
        "^a",  "b$",        "^[a-b]+$", "a|1",        "^(?:ab)*$",
        "\\d", "^(?!a).*$", "^.{2,3}$", "^(?=.*a)b*", "a\\b"};
    return kPatterns[Up(10)];
  }
  std::string Name() {
    static const char* const kNames[] = {"a", "b", "c", "ab"};
    return kNames[Up(4)];
  }

  Json One(int depth) {
    if (Up(20) == 0) return Up(3) > 0;
    Json schema = Json::object();
    static const char* const kTypes[] = {"null",   "boolean", "integer",
                                         "number", "string",  "array",
                                         "object", "object"};
    if (Up(4) > 0) {
      if (Up(5) == 0) {
        schema["type"] = Json::array({kTypes[Up(8)], "null"});
        if (schema["type"][0] == "null") schema["type"] = "null";
      } else {
        schema["type"] = kTypes[Up(8)];
      }
    }
    for (int n = 1 + Up(3); n > 0; --n) Add(depth, &schema);
    return schema;
  }

  // Numbers of which many are neither here nor there.
  Json Numbers() {
    Json schema = {{"type", Up(4) > 0 ? "integer" : "number"}};
    if (Up(3) > 0) schema["minimum"] = Up(12) - 4;
    if (Up(3) > 0) schema["maximum"] = Up(12);
    if (Up(4) == 0) schema["multipleOf"] = 1 + Up(3);
    return schema;
  }

  Json Several(int depth) {
    Json list = Json::array();
    for (int n = 1 + Up(3); n > 0; --n) list.push_back(One(depth - 1));
    return list;
  }

  void Add(int depth, Json* schema) {
    Json& s = *schema;
    const int kinds = depth > 0 ? 39 : 18;
    switch (Up(kinds)) {
      case 0:
        s["minimum"] = (Up(20) - 8) / 4.0;
        break;
      case 1:
        s["maximum"] = (Up(30) - 8) / 4.0;
        break;
      case 2:
        s["exclusiveMinimum"] = Up(8) - 4;
        break;
      case 3:
        s["exclusiveMaximum"] = Up(8) - 2;
        break;
      case 4:
        s["multipleOf"] =
            Up(2) == 0 ? Json(1 + Up(7)) : Json((1 + Up(5)) / 4.0);
        break;
      case 5:
      case 6:
        s["minLength"] = Up(4);
        break;
      case 7:
        s["maxLength"] = Up(4);
        break;
      case 8:
      case 9:
        s["pattern"] = Pattern();
        break;
      case 10:
        s["const"] = Value(1);
        break;
      case 11: {
        Json values = Json::array();
        for (int n = 1 + Up(4); n > 0; --n) values.push_back(Value(1));
        s["enum"] = values;
        break;
      }
      case 12:
        s["minItems"] = Up(4);
        break;
      case 13:
        s["maxItems"] = Up(4);
        break;
      case 14:
        s["uniqueItems"] = true;
        break;
      case 15:
        s["minProperties"] = Up(4);
        break;
      case 16:
        s["maxProperties"] = Up(4);
        break;
      case 17:
        s["required"] = Json::array({Name()});
        break;
      case 18:
      case 19:
      case 20:
        for (const char* name : {"a", "b", "c"}) {
          if (Up(2) == 0) s["properties"][name] = One(depth - 1);
        }
        break;
      case 21:
      case 22:
        s["additionalProperties"] = Up(2) == 0 ? Json(false) : One(depth - 1);
        break;
      case 23:
        s["patternProperties"][Pattern()] = One(depth - 1);
        break;
      case 24:
        s["propertyNames"] = {{"pattern", Pattern()}};
        break;
      case 25:
        s["items"] = One(depth - 1);
        break;
      case 26:
        s["prefixItems"] = Several(depth);
        break;
      case 27:
        s["contains"] = One(depth - 1);
        if (Up(2) == 0) s["minContains"] = Up(3);
        if (Up(2) == 0) s["maxContains"] = Up(3);
        break;
      case 28:
        s["allOf"] = Several(depth);
        break;
      case 29:
        s["anyOf"] = Several(depth);
        break;
      case 30:
        s["oneOf"] = Several(depth);
        break;
      case 31:
        s["not"] = One(depth - 1);
        break;
      case 32:
        s["if"] = One(depth - 1);
        s["then"] = One(depth - 1);
        if (Up(2) == 0) s["else"] = One(depth - 1);
        break;
      case 33:
        s["dependentRequired"][Name()] = Json::array({Name()});
        break;
      case 34:
        s["dependentSchemas"][Name()] = One(depth - 1);
        break;
      case 35:
        s["oneOf"] = Json::array({Numbers(), Numbers()});
        break;
      case 36:
        s.update(Numbers());
        s["not"] = Numbers();
        break;
      case 37:
        s.update(Numbers());
        s["if"] = Numbers();
        s[Up(2) == 0 ? "then" : "else"] = {{"multipleOf", 1 + Up(3)}};
        break;
      default:
        s["$ref"] = absl::StrCat("#/$defs/d", Up(2));
    }
  }

  std::mt19937 random_;
};

// A text that the grammar allows, by the first bytes that lead on, somewhat at
// random; empty if none ends soon.
std::string Draw(const Compiled& compiled, Writer& writer) {
  Automaton automaton(&compiled);
  int32_t set = automaton.SetAt({compiled.start(), 0});
  std::string text;
  while (text.size() < 200) {
    std::vector<uint8_t> next;
    for (int byte = 0x20; byte < 0x7f; ++byte) {
      if (automaton.Step(set, static_cast<uint8_t>(byte)) != Automaton::kDead) {
        next.push_back(static_cast<uint8_t>(byte));
      }
    }
    if (automaton.ended(set) && (next.empty() || writer.Up(2) == 0)) {
      return text;
    }
    if (next.empty()) return "";
    uint8_t byte = next[writer.Up(static_cast<int>(next.size()))];
    // Ends are few among letters.
    for (const char end : {'"', '}', ']'}) {
      const auto code = static_cast<uint8_t>(end);
      const bool may = std::find(next.begin(), next.end(), code) != next.end();
      if (may && writer.Up(text.size() > 40 ? 2 : 4) == 0) byte = code;
    }
    text.push_back(static_cast<char>(byte));
    set = automaton.Step(set, byte);
  }
  return "";
}

// Whether some number has more digits than a double holds: the validator
// computes with doubles.
bool HasLongNumber(const std::string& text) {
  int digits = 0;
  for (const char c : text) {
    if (digits > 0 && (c == 'e' || c == 'E')) return true;
    const bool inside = (c >= '0' && c <= '9') || c == '.';
    digits = inside ? digits + 1 : 0;
    if (digits > 14) return true;
  }
  return false;
}

TEST(SchemaProperty, WhatAGrammarAllowsIsValid) {
  const char* asked = std::getenv("WEFT_SCHEMA_ROUNDS");
  const int rounds = asked == nullptr ? 200 : std::atoi(asked);
  int drawn = 0, allowed = 0, valid = 0, valid_and_open = 0, kept = 0;
  for (int round = 0; round < rounds; ++round) {
    Writer writer(round);
    const Json schema = writer.Schema();
    const Validator validate(schema);
    for (const bool open : {false, true}) {
      SchemaOptions options;
      options.open = open;
      options.strict = false;
      const auto syntax = FromJsonSchema(schema, options);
      // Nothing at all may be allowed; what is dropped may let anything pass.
      if (!syntax.ok() || !syntax->dropped.empty()) continue;
      const auto compiled = Compiled::Create(*syntax);
      ASSERT_TRUE(compiled.ok()) << compiled.status() << "\n" << schema.dump();
      ++kept;
      for (int i = 0; i < 8; ++i) {
        const std::string text = Draw(*compiled, writer);
        if (text.empty() || HasLongNumber(text)) continue;
        const Json value = Json::parse(text, nullptr, false);
        ASSERT_FALSE(value.is_discarded()) << schema.dump() << "\n" << text;
        ++drawn;
        ASSERT_TRUE(validate(value))
            << round << (open ? " open " : " ") << schema.dump() << "\n"
            << text;
      }
      Matcher matches(syntax);
      for (int i = 0; i < 40; ++i) {
        const Json value = writer.Value(2);
        const bool is_valid = validate(value);
        const bool is_allowed = matches(value.dump());
        if (is_allowed) ++allowed;
        if (is_valid) ++valid;
        if (is_valid && is_allowed && open) ++valid_and_open;
        ASSERT_FALSE(is_allowed && !is_valid)
            << round << (open ? " open " : " ") << schema.dump() << "\n"
            << value.dump();
      }
    }
  }
  // The test tests something.
  EXPECT_GT(kept, rounds / 2);
  EXPECT_GT(drawn, rounds);
  EXPECT_GT(valid_and_open, rounds);
  std::printf("%d grammars, %d texts drawn; of %d valid values %d allowed\n",
              kept, drawn, valid, allowed);
}

}  // namespace
}  // namespace weft::grammar
